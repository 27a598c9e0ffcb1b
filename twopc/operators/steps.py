"""The steps of a job as frozen descriptions: data that can be validated, shown, and copied to every subtask."""

from __future__ import annotations

import inspect
import re
from dataclasses import dataclass
from typing import Any, Literal, get_args

from twopc.errors import ConfigurationError
from twopc.operators.declared_states import refuse_other_states
from twopc.operators.functions import Function, function_name, is_asynchronous, is_coroutine_function
from twopc.operators.window_step import WindowAggregate
from twopc.processor import ListState, Processor
from twopc.protocol.ids import checked_name
from twopc.serde import Bytes, Json, Serde, checked_state_serde
from twopc.state.layout import ELEMENTS, EXPIRIES, STREAM_TIME, TIMERS


@dataclass(frozen=True, slots=True)
class _Described:
    function: Function
    keeps_key = False
    """Whether what comes of a record has its key, whatever the function does: only then may state by key follow."""

    def __post_init__(self) -> None:
        if not callable(self.function):
            raise ConfigurationError(f"{self.operator} needs a function, not {type(self.function).__name__}")
        self._check_kind()

    def _check_kind(self) -> None:
        if is_asynchronous(self.function):
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

    keeps_key = True


@dataclass(frozen=True, slots=True)
class Filter(_Described):
    """value -> whether to keep the record"""

    keeps_key = True


@dataclass(frozen=True, slots=True)
class FlatMap(_Described):
    """value -> values, each with the key, timestamp and headers of the input"""

    keeps_key = True


@dataclass(frozen=True, slots=True)
class MapRecords(_Described):
    """record -> record; each has the key of the other where the job says that, which is checked"""

    keeps_key: bool = False


@dataclass(frozen=True, slots=True)
class FilterRecords(_Described):
    """record -> whether to keep it"""

    keeps_key = True


@dataclass(frozen=True, slots=True)
class FlatMapRecords(_Described):
    """record -> records; each has its key where the job says that, which is checked"""

    keeps_key: bool = False


@dataclass(frozen=True, slots=True)
class Peek(_Described):
    """value -> whatever: the record goes on as it is"""

    keeps_key = True


@dataclass(frozen=True, slots=True)
class PeekRecords(_Described):
    """record -> whatever: it goes on as it is"""

    keeps_key = True


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
    keeps_key = True

    def __post_init__(self) -> None:
        _Described.__post_init__(self)
        checked_name("the name of a stateful_map", self.name)
        checked_state_serde(f"state of {self}", self.state)

    @property
    def states(self) -> dict[str, Serde]:
        """The serde of each state, by name."""
        return {self.name: self.state}

    def __str__(self) -> str:
        return f"stateful_map({function_name(self.function)}, name={self.name!r})"


@dataclass(frozen=True, slots=True)
class AssignTimestamps(_Described):
    """value -> timestamp in Unix milliseconds, or None for the record's own"""

    keeps_key = True


@dataclass(frozen=True, slots=True)
class KeyBy(_Described):
    """value -> key, anything but None"""


@dataclass(frozen=True, slots=True)
class KeyByRecords(_Described):
    """record -> key, anything but None"""


@dataclass(frozen=True, slots=True)
class Process:
    """record, and the states of its key -> records"""

    processor: Processor
    name: str
    keeps_key: bool = False
    operator = "process"

    def __post_init__(self) -> None:
        given: Any = self.processor
        if not isinstance(given, Processor):
            hint = f": write {given.__name__}()" if isinstance(given, type) else ""
            raise ConfigurationError(f"process needs a Processor, not {given!r}{hint}")
        for function in (self.processor.process, self.processor.on_timer):
            if inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function):
                raise ConfigurationError(f"{self} can't run a coroutine function: give {function.__name__} a plain one")
        refuse_other_states(self.processor)
        checked_name("the name of a process", self.name)
        if not isinstance(outputs := type(self.processor).outputs, tuple) or not all(map(_is_output, outputs)):
            raise ConfigurationError(
                f"outputs of {self} is a tuple of names, each of letters, digits, '_' and '-', not {outputs!r}"
            )

    @property
    def states(self) -> dict[str, Serde]:
        """The serde of each state, by name: the declared ones, and those of the operator itself."""
        declared = type(self.processor).declared_states()
        own: dict[str, Serde] = {STREAM_TIME: Json()}
        if self.has_timers:
            own[TIMERS] = Bytes()
        if any(state.ttl_ms for state in declared.values()):
            own[EXPIRIES] = Bytes()
        if any(isinstance(state, ListState) for state in declared.values()):
            own[ELEMENTS] = Json()
        return own | {name: state.stored_serde for name, state in declared.items()}

    @property
    def has_timers(self) -> bool:
        """Whether the processor says what a timer does."""
        return type(self.processor).on_timer is not Processor.on_timer

    def __str__(self) -> str:
        return f"process({type(self.processor).__qualname__.replace('<locals>.', '')}, name={self.name!r})"


@dataclass(frozen=True, slots=True)
class _Table:
    name: str
    state: Serde
    operator = "table"
    keeps_key = True

    def __post_init__(self) -> None:
        checked_name("the name of a table", self.name)
        checked_state_serde(f"state of {self}", self.state)


@dataclass(frozen=True, slots=True)
class KeepTable(_Table):
    """the latest value of each key, which joins look up; None deletes it"""

    @property
    def states(self) -> dict[str, Serde]:
        """The serde of the values, by the table's name."""
        return {self.name: self.state}

    def __str__(self) -> str:
        return f"table({self.name!r})"


How = Literal["inner", "left"]
"""The result of a join for a record without a match: no record, or what the function makes of None."""


@dataclass(frozen=True, slots=True)
class KeepBroadcast(_Table):
    """the latest value of each key, which joins of every subtask look up; None deletes it"""

    def __str__(self) -> str:
        return f"table({self.name!r}, broadcast=True)"


@dataclass(frozen=True, slots=True)
class _Join(_Described):
    table: str
    how: How
    keeps_key = True

    def __post_init__(self) -> None:
        _Described.__post_init__(self)
        if self.how not in (known := get_args(How)):
            raise ConfigurationError(f"how of a join is one of {', '.join(map(repr, known))}, not {self.how!r}")

    @property
    def operator(self) -> str:
        return "join"

    def __str__(self) -> str:
        return f"join({function_name(self.function)}, how={self.how!r})"


@dataclass(frozen=True, slots=True)
class JoinTable(_Join):
    """(value, what the table has for its key) -> value; `table` is its operator id"""


@dataclass(frozen=True, slots=True)
class JoinBroadcast(_Join):
    """(value, what the broadcast table has for its key, or for `key(value)`) -> value; `table` is its operator id"""

    key: Function | None = None

    def __post_init__(self) -> None:
        _Join.__post_init__(self)
        if self.key is not None and not callable(self.key):
            raise ConfigurationError(f"key of a join is a function of the value, not {type(self.key).__name__}")
        if self.key is not None and is_asynchronous(self.key):
            raise ConfigurationError(f"key of {self} must be a plain function, no coroutine function")

    def __str__(self) -> str:
        key = "" if self.key is None else f", key={function_name(self.key)}"
        return f"join({function_name(self.function)}, how={self.how!r}{key})"


@dataclass(frozen=True, slots=True)
class MapBatches(_Described):
    """pyarrow.RecordBatch -> pyarrow.RecordBatch; the types are Arrow's, None for a record's own"""

    key_type: Any = None
    value_type: Any = None


@dataclass(frozen=True, slots=True)
class MapAsync(_Described):
    """value -> awaitable of a value; the function may be an object with coroutine functions `open` and `close`"""

    concurrency: int
    timeout_ms: int | None
    retries: int
    keeps_key = True

    def __post_init__(self) -> None:
        _Described.__post_init__(self)
        _check_whole(f"concurrency of {self.operator}", self.concurrency, 1)
        _check_whole(f"retries of {self.operator}", self.retries, 0)
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


@dataclass(frozen=True, slots=True)
class MapAsyncRecords(MapAsync):
    """record -> awaitable of a record"""

    keeps_key = False


KeyedStep = StatefulMap | Process | KeepTable | WindowAggregate
"""Steps that keep state by key: each has a name, and `states`, how each of its states is encoded."""

ByKey = KeyedStep | JoinTable
"""Steps to which all records of a key must come under one partition number."""

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
    | JoinTable
    | KeepBroadcast
    | JoinBroadcast
    | KeyBy
    | KeyByRecords
    | KeyedStep
)


def _is_output(name: Any) -> bool:
    return isinstance(name, str) and bool(re.fullmatch(r"[A-Za-z0-9_-]{1,128}", name))


def _check_whole(what: str, number: Any, least: int) -> None:
    if type(number) is not int or number < least:
        raise ConfigurationError(f"{what} must be a whole number from {least} on, not {number!r}")
