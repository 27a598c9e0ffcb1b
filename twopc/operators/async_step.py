"""The steps of map_async and map_async_records; `async_map` runs them."""

from __future__ import annotations

from dataclasses import dataclass

from twopc.errors import ConfigurationError
from twopc.operators.function_step import FunctionStep
from twopc.operators.functions import is_coroutine_function
from twopc.operators.instance import Instance, OperatorContext
from twopc.operators.step import check_whole


@dataclass(frozen=True, slots=True)
class MapAsync(FunctionStep):
    """value -> awaitable of a value; the function may be an object with coroutine functions `open` and `close`"""

    concurrency: int
    timeout_ms: int | None
    retries: int
    keeps_key = one_to_one = True
    by_record = False

    def __post_init__(self) -> None:
        FunctionStep.__post_init__(self)
        check_whole(f"concurrency of {self.operator}", self.concurrency, 1)
        check_whole(f"retries of {self.operator}", self.retries, 0)
        if self.timeout_ms == 0:
            raise ConfigurationError(f"timeout of {self.operator} must be longer than nothing")

    def _check_kind(self) -> None:
        if not is_coroutine_function(self.function):
            raise ConfigurationError(
                f"{self} needs a coroutine function (async def), not a plain one: give that to map or map_records"
            )
        for name in ("open", "close"):
            if not is_coroutine_function(getattr(self.function, name, self.function)):
                raise ConfigurationError(f"{self} awaits {name}() of its function: make that a coroutine function")

    def open(self, context: OperatorContext) -> Instance:
        from twopc.operators.async_map import AsyncMap

        return AsyncMap(self)


@dataclass(frozen=True, slots=True)
class MapAsyncRecords(MapAsync):
    """record -> awaitable of a record; each has the key of the other where the job says that, which is checked"""

    keeps_key: bool = False
    by_record = True
