"""The join of two streams by key and event time, as a processor: each side's records wait for those of the other.

- A record meets those of the other side whose times are at most `within` apart, whichever comes first.
- It waits until the stream time is past its time, `within` and the grace; then it is gone, and one that met nothing
  goes out alone where the join keeps its side. One that comes later meets who still waits, and does not wait.
- When one is gone was fixed when it came, so a job that was changed ends what waits as it was.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from twopc.column import Over
from twopc.errors import ConfigurationError
from twopc.operators.functions import function_name
from twopc.operators.instance import OperatorContext
from twopc.operators.process import ProcessOperator
from twopc.operators.process_step import Process
from twopc.operators.result import Result, Work
from twopc.operators.step import InputPort
from twopc.processor import Context, ListState, Processor
from twopc.record import Batch, Record
from twopc.serde import Serde
from twopc.state.forms import Waiting, WaitingOf

HowStreams = Literal["inner", "left", "outer"]
"""Whose records go out alone, where nothing of the other side met them: nobody's, this stream's, or those of both."""


class StreamJoin(Processor):
    """`left` and `right` are declared by a class of the join's own, with its serdes. `is_right` says who comes."""

    left: ListState
    right: ListState

    def __init__(self, function: Callable[[Any, Any], Any], how: HowStreams, within_ms: int, grace_ms: int) -> None:
        self.is_right = False
        self.function, self.how = function, how
        self.within_ms, self.grace_ms = within_ms, grace_ms

    def process(self, record: Record, context: Context) -> list[Record]:
        at = context.timestamp
        if at is None or context.stream_time is None:
            raise ValueError(
                "the record has no timestamp, and streams are joined by event time (timestamp= of a source)"
            )
        if record.value is None:
            return []
        own, other = (self.right, self.left) if self.is_right else (self.left, self.right)
        here = other.get()
        near = [abs(each.at - at) <= self.within_ms for each in here]
        outputs = [
            record.replace(value=self._joined(record.value, each.value), timestamp=max(at, each.at))
            for each, is_near in zip(here, near, strict=True)
            if is_near
        ]
        if any(is_near and not each.met for each, is_near in zip(here, near, strict=True)):
            other.set([each._replace(met=each.met or is_near) for each, is_near in zip(here, near, strict=True)])
        until = at + self.within_ms + self.grace_ms + 1
        if until > context.stream_time:
            own.add(Waiting(at, until, bool(outputs), record.value))
            context.set_timer(until)
        elif not outputs and self._goes_alone(is_right=self.is_right):
            outputs.append(record.replace(value=self._joined(record.value, None)))
        return outputs

    def on_timer(self, at: int, context: Context) -> list[Record]:
        outputs = []
        for is_right, state in ((False, self.left), (True, self.right)):
            here: list[Waiting] = state.get()
            kept = [waiting for waiting in here if waiting.until > at]
            if len(kept) == len(here):
                continue
            state.set(kept)
            # One whose own timer has failed is there still, and is not told twice.
            alone = [
                waiting
                for waiting in here
                if waiting.until == at and not waiting.met and self._goes_alone(is_right=is_right)
            ]
            for each in alone:
                value = self.function(None, each.value) if is_right else self.function(each.value, None)
                outputs.append(Record(context.key, value, timestamp=each.at))
        return outputs

    def _joined(self, own: Any, other: Any) -> Any:
        return self.function(other, own) if self.is_right else self.function(own, other)

    def _goes_alone(self, *, is_right: bool) -> bool:
        return self.how == "outer" or (self.how == "left" and not is_right)


@dataclass(frozen=True, slots=True)
class JoinStreams(Process):
    """(value of the one, value of the other) -> value; the key stays as it is"""

    processor: StreamJoin
    keeps_key: bool = True
    operator = "join"
    ports = (InputPort("left"), InputPort("right"))
    checks_keys = False

    def open(self, context: OperatorContext) -> ProcessOperator:
        return StreamJoinOperator(self, context)

    def __str__(self) -> str:
        join = self.processor
        return f"join({function_name(join.function)}, how={join.how!r}, within={join.within_ms}ms, name={self.name!r})"


class StreamJoinOperator(ProcessOperator):
    """One join of two streams on one subtask."""

    @property
    def ports(self) -> Sequence[Work]:
        return (self._left, self._right)

    def _left(self, batch: Batch, over: Over) -> Result:
        return self._of_side(batch, over, is_right=False)

    def _right(self, batch: Batch, over: Over) -> Result:
        return self._of_side(batch, over, is_right=True)

    def _of_side(self, batch: Batch, over: Over, *, is_right: bool) -> Result:
        assert isinstance(self.processor, StreamJoin)
        self.processor.is_right = is_right
        return self.process(batch, over)


def join_streams(
    function: Callable[[Any, Any], Any],
    how: Any,
    name: str | None,
    times_ms: tuple[int, int],
    serdes: tuple[Serde, Serde],
) -> JoinStreams:
    """Return the step that joins two streams; `times_ms` are how far apart two records may be, and the grace."""
    if name is None:
        raise ConfigurationError(
            "a join of two streams keeps records in checkpoints, under its name: give it one, name="
        )
    if not callable(function):
        raise ConfigurationError(f"join needs a function, not {type(function).__name__}")
    if how not in (known := get_args(HowStreams)):
        raise ConfigurationError(f"how of a join of streams is one of {', '.join(map(repr, known))}, not {how!r}")
    states = {side: ListState(WaitingOf(serde)) for side, serde in zip(("left", "right"), serdes, strict=True)}
    own = type("StreamJoinOf", (StreamJoin,), states)
    return JoinStreams(own(function, how, *times_ms), name)
