"""The step of `stream.window(...)`: what each window of each key comes to; `windows` runs it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, assert_never

from twopc.errors import ConfigurationError
from twopc.operators.functions import Function, check_callable, check_plain, function_name
from twopc.operators.instance import Instance, OperatorContext
from twopc.operators.step import Step
from twopc.protocol.ids import checked_name
from twopc.serde import Bytes, Json, Serde, checked_state_serde
from twopc.state.forms import SessionsOf, SlidingOf, WindowsOf
from twopc.state.layout import OPEN_WINDOWS, STREAM_TIME, TIMERS, TOLD
from twopc.windows import Hopping, Session, Sliding, Tumbling, Windows


class _WithoutFunction:
    """An aggregation that has nothing of the user's to name."""

    __slots__ = ()

    def __str__(self) -> str:
        return ""


@dataclass(frozen=True, slots=True)
class Count(_WithoutFunction):
    """The number of records in a window."""

    operator: ClassVar[str] = "count"


@dataclass(frozen=True, slots=True)
class Sum(_WithoutFunction):
    """The sum of the values in a window."""

    operator: ClassVar[str] = "sum"


@dataclass(frozen=True, slots=True)
class Collect(_WithoutFunction):
    """The list of the values in a window, in the order in which they came."""

    operator: ClassVar[str] = "collect"


@dataclass(frozen=True, slots=True)
class Reduce:
    """(value so far, value) -> value"""

    function: Function
    operator: ClassVar[str] = "reduce"

    def __post_init__(self) -> None:
        _check_function(self.operator, self.function)

    def __str__(self) -> str:
        return f"{function_name(self.function)}, "


@dataclass(frozen=True, slots=True)
class Aggregate:
    """(aggregate, value) -> aggregate, from `initial` on; merge: (aggregate, aggregate) -> aggregate"""

    initial: Any
    function: Function
    merge: Function | None = None
    operator: ClassVar[str] = "aggregate"

    def __post_init__(self) -> None:
        _check_function(self.operator, self.function)
        if self.merge is not None:
            _check_function("merge of aggregate", self.merge)

    def __str__(self) -> str:
        return f"{function_name(self.function)}, "


Aggregation = Count | Sum | Collect | Reduce | Aggregate


@dataclass(frozen=True, slots=True)
class WindowAggregate(Step):
    """Records -> what each window of each key comes to, at three side outputs: final, current and late."""

    windows: Windows
    grace_ms: int
    aggregation: Aggregation
    name: str
    serde: Serde
    idle_ms: int | None = None
    """For how long a partition number may have no records before its time follows that of the others; None for ever."""
    keeps_key = by_key = True

    def __post_init__(self) -> None:
        checked_name(f"the name of a windowed {self.operator}", self.name)
        checked_state_serde(f"state of {self}", self.serde)
        if isinstance(self.windows, Session) and isinstance(self.aggregation, Aggregate) and not self.aggregation.merge:
            raise ConfigurationError(
                f"{self}: a record that comes between two sessions makes them one, so aggregate needs "
                "merge=function, which makes one aggregate of two"
            )

    @property
    def operator(self) -> str:
        return self.aggregation.operator

    @property
    def states(self) -> Mapping[str, Serde]:
        """The open windows of a key, and the states of the operator itself."""
        return {self.name: _form_of(self.windows)(self.serde), **_OF_ITS_OWN}

    @property
    def state_name(self) -> str:
        return self.name

    def open(self, context: OperatorContext) -> Instance:
        from twopc.operators.windows import WindowOperator

        return WindowOperator(self, context)

    def __str__(self) -> str:
        idle = "" if self.idle_ms is None else f"idle={self.idle_ms}ms, "
        return f"{self.operator}({self.aggregation}{self.windows}, grace={self.grace_ms}ms, {idle}name={self.name!r})"


_OF_ITS_OWN: Mapping[str, Serde] = {STREAM_TIME: Json(), TIMERS: Bytes(), TOLD: Json(), OPEN_WINDOWS: Json()}


def _form_of(windows: Windows) -> type[WindowsOf]:
    match windows:
        case Tumbling() | Hopping():
            return WindowsOf
        case Session():
            return SessionsOf
        case Sliding():
            return SlidingOf
        case _:
            assert_never(windows)


def _check_function(operator: str, function: Any) -> None:
    check_callable(operator, function)
    check_plain(operator, function)
