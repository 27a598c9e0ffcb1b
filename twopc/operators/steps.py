"""The steps of a job as frozen descriptions: data that can be validated, shown, and copied to every subtask."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from twopc.errors import ConfigurationError
from twopc.processor import Processor
from twopc.protocol.ids import checked_name
from twopc.serde import Bytes, Json, Serde, checked_serde
from twopc.state.forms import Timed
from twopc.state.layout import EXPIRIES, STREAM_TIME, TIMERS

Function = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class _Described:
    function: Function

    def __post_init__(self) -> None:
        if not callable(self.function):
            raise ConfigurationError(f"{self.operator} needs a function, not {type(self.function).__name__}")
        self._check_kind()

    def _check_kind(self) -> None:
        if _is_asynchronous(self.function):
            raise ConfigurationError(
                f"{self} can't run a coroutine function: give that to map_async or map_async_records, and this a plain "
                "one"
            )

    @property
    def operator(self) -> str:
        """The name of the method of `Stream` that made this step."""
        return "".join("_" + char.lower() if char.isupper() else char for char in type(self).__name__).lstrip("_")

    def __str__(self) -> str:
        return f"{self.operator}({function_name(self.function)})"


@dataclass(frozen=True, slots=True)
class Map(_Described):
    """value -> value"""


@dataclass(frozen=True, slots=True)
class Filter(_Described):
    """value -> whether to keep the record"""


@dataclass(frozen=True, slots=True)
class FlatMap(_Described):
    """value -> values, each with the key, timestamp and headers of the input"""


@dataclass(frozen=True, slots=True)
class MapRecords(_Described):
    """record -> record"""


@dataclass(frozen=True, slots=True)
class FilterRecords(_Described):
    """record -> whether to keep it"""


@dataclass(frozen=True, slots=True)
class FlatMapRecords(_Described):
    """record -> records"""


@dataclass(frozen=True, slots=True)
class Peek(_Described):
    """value -> whatever: the record goes on as it is"""


@dataclass(frozen=True, slots=True)
class PeekRecords(_Described):
    """record -> whatever: it goes on as it is"""


@dataclass(frozen=True, slots=True)
class Print(PeekRecords):
    """The function writes the record, under the label, to standard output."""

    label: str = ""

    def __str__(self) -> str:
        return f"print({self.label!r})" if self.label else "print()"


@dataclass(frozen=True, slots=True)
class StatefulMap(_Described):
    """(state of the key or None, value) -> (new state or None to forget the key, value)"""

    name: str
    state: Serde

    def __post_init__(self) -> None:
        _Described.__post_init__(self)
        checked_name("the name of a stateful_map", self.name)
        checked_serde(f"state of {self}", self.state)

    @property
    def states(self) -> dict[str, Serde]:
        """How each state is encoded, by name."""
        return {self.name: self.state}

    def __str__(self) -> str:
        return f"stateful_map({function_name(self.function)}, name={self.name!r})"


@dataclass(frozen=True, slots=True)
class AssignTimestamps(_Described):
    """value -> timestamp in Unix milliseconds, or None for none"""


@dataclass(frozen=True, slots=True)
class Process:
    """record, and the states of its key -> records"""

    processor: Processor
    name: str
    operator = "process"

    def __post_init__(self) -> None:
        given: Any = self.processor
        if not isinstance(given, Processor):
            hint = f": write {given.__name__}()" if isinstance(given, type) else ""
            raise ConfigurationError(f"process needs a Processor, not {given!r}{hint}")
        for function in (self.processor.process, self.processor.on_timer):
            if inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function):
                raise ConfigurationError(f"{self} can't run a coroutine function: give {function.__name__} a plain one")
        checked_name("the name of a process", self.name)

    @property
    def states(self) -> dict[str, Serde]:
        """How each state is encoded, by name: the declared ones, and those of the operator itself."""
        declared = type(self.processor).declared_states()
        own: dict[str, Serde] = {STREAM_TIME: Json()}
        if self.has_timers:
            own[TIMERS] = Bytes()
        if any(state.ttl_ms for state in declared.values()):
            own[EXPIRIES] = Bytes()
        return own | {
            name: state.stored_serde if state.ttl_ms is None else Timed(state.stored_serde)
            for name, state in declared.items()
        }

    @property
    def has_timers(self) -> bool:
        """Whether the processor says what a timer does."""
        return type(self.processor).on_timer is not Processor.on_timer

    def __str__(self) -> str:
        return f"process({type(self.processor).__qualname__.replace('<locals>.', '')}, name={self.name!r})"


@dataclass(frozen=True, slots=True)
class MapBatches(_Described):
    """pyarrow.RecordBatch -> pyarrow.RecordBatch; the types are Arrow's, None to take what the batch looks like"""

    key_type: Any = None
    value_type: Any = None


@dataclass(frozen=True, slots=True)
class MapAsync(_Described):
    """value -> awaitable of a value; the function may be an object with coroutine functions `open` and `close`"""

    concurrency: int
    timeout_ms: int | None
    retries: int

    def __post_init__(self) -> None:
        _Described.__post_init__(self)
        _check_whole(f"concurrency of {self.operator}", self.concurrency, 1)
        _check_whole(f"retries of {self.operator}", self.retries, 0)
        if self.timeout_ms == 0:
            raise ConfigurationError(f"timeout of {self.operator} must be longer than nothing")

    def _check_kind(self) -> None:
        if not _is_coroutine_function(self.function):
            raise ConfigurationError(
                f"{self} needs a coroutine function (async def), not a plain one: give that to map or map_records"
            )
        for name in ("open", "close"):
            if not _is_coroutine_function(getattr(self.function, name, self.function)):
                raise ConfigurationError(f"{self} awaits {name}() of its function: make that a coroutine function")


@dataclass(frozen=True, slots=True)
class MapAsyncRecords(MapAsync):
    """record -> awaitable of a record"""


SETS_KEYS = (MapRecords, MapAsyncRecords, FlatMapRecords, MapBatches, Process)
"""Steps after which a record may have another key than that by which its partition was chosen."""

KeyedStep = StatefulMap | Process
"""Steps that keep state by key: each has a name, and `states`, how each of its states is encoded."""

Step = (
    Map
    | Filter
    | FlatMap
    | MapRecords
    | FilterRecords
    | FlatMapRecords
    | Peek
    | PeekRecords
    | MapBatches
    | MapAsync
    | AssignTimestamps
    | KeyedStep
)


def _is_coroutine_function(function: Function) -> bool:
    called = type(function).__call__ if callable(function) else None
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(called)


def _is_asynchronous(function: Function) -> bool:
    return _is_coroutine_function(function) or inspect.isasyncgenfunction(function)


def _check_whole(what: str, number: Any, least: int) -> None:
    if type(number) is not int or number < least:
        raise ConfigurationError(f"{what} must be a whole number from {least} on, not {number!r}")


def function_name(function: Function) -> str:
    """Return how a person would point at this function: its name; for a lambda, its file and line too."""
    if isinstance(function, partial):
        return f"partial of {function_name(function.func)}"
    name = getattr(function, "__qualname__", type(function).__qualname__)
    code = getattr(function, "__code__", None)
    if name.endswith("<lambda>") and code is not None:
        return f"lambda at {Path(code.co_filename).name}:{code.co_firstlineno}"
    return str(name).replace("<locals>.", "")
