"""The join of two streams by key and event time, as a processor: each side's records wait for those of the other.

- A record meets those of the other side whose times are at most `within` apart, whichever comes first.
- It waits until the stream time is past its time, `within` and the grace; then it is gone, and one that met nothing
  goes out alone where the join keeps its side. One that comes later meets who still waits, and does not wait.
- When one is gone was fixed when it came, so a job that was changed ends what waits as it was.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from twopc.operators.functions import function_name
from twopc.operators.how import HowBoth, check_join
from twopc.operators.sided import SidedJoin, SidedProcessor
from twopc.operators.waiting_records import BoundWaitingRecords, WaitingRecords
from twopc.processor import Context
from twopc.record import Record
from twopc.serde import Serde
from twopc.state.forms import Waiting, WaitingOf


class StreamJoin(SidedProcessor):
    """`left` and `right` are declared by a class of the join's own, with its serdes."""

    left: BoundWaitingRecords
    right: BoundWaitingRecords

    def __init__(self, function: Callable[[Any, Any], Any], how: HowBoth, within_ms: int, grace_ms: int) -> None:
        self.function, self.how = function, how
        self.within_ms, self.grace_ms = within_ms, grace_ms

    def process(self, record: Record, context: Context) -> list[Record]:
        is_right, at = next(self.are_right), context.timestamp
        if at is None or context.stream_time is None:
            raise ValueError(
                "the record has no timestamp, and streams are joined by event time (timestamp= of a source)"
            )
        if record.value is None:
            return []
        own, other = (self.right, self.left) if is_right else (self.left, self.right)
        outputs = [
            record.replace(
                value=self._joined(record.value, waiting.value, is_right=is_right), timestamp=max(at, waiting.at)
            )
            for waiting in other.meet(at, self.within_ms)
        ]
        until = at + self.within_ms + self.grace_ms + 1
        if until > context.stream_time:
            own.add(Waiting(at, until, bool(outputs), record.value))
            context.set_timer(until)
        elif not outputs and self._goes_alone(is_right=is_right):
            outputs.append(record.replace(value=self._joined(record.value, None, is_right=is_right)))
        return outputs

    def on_timer(self, at: int, context: Context) -> list[Record]:
        outputs: list[Record] = []
        for is_right, side in ((False, self.left), (True, self.right)):
            if self._goes_alone(is_right=is_right):
                outputs += (
                    Record(context.key, self._joined(waiting.value, None, is_right=is_right), timestamp=waiting.at)
                    for waiting in side.alone(at)
                )
            side.leave(at)
        return outputs

    def _joined(self, own: Any, other: Any, *, is_right: bool) -> Any:
        return self.function(other, own) if is_right else self.function(own, other)

    def _goes_alone(self, *, is_right: bool) -> bool:
        return self.how == "outer" or (self.how == "left" and not is_right)


@dataclass(frozen=True, slots=True)
class JoinStreams(SidedJoin):
    """(value of the one, value of the other) -> value; the key stays as it is"""

    processor: StreamJoin

    def __str__(self) -> str:
        join = self.processor
        return f"join({function_name(join.function)}, how={join.how!r}, within={join.within_ms}ms, name={self.name!r})"


def join_streams(
    function: Callable[[Any, Any], Any],
    how: Any,
    name: str,
    times_ms: tuple[int, int],
    serdes: tuple[Serde, Serde],
) -> JoinStreams:
    """Return the step that joins two streams; `times_ms` are how far apart two records may be, and the grace."""
    check_join("a join of streams", function, how, HowBoth)
    states = {side: WaitingRecords(WaitingOf(serde)) for side, serde in zip(("left", "right"), serdes, strict=True)}
    own = type("StreamJoinOf", (StreamJoin,), states)
    return JoinStreams(own(function, how, *times_ms), name)
