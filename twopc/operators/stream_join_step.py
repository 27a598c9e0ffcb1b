"""The step of `stream.join(other, ..., within=...)`: two streams by key and event time; `stream_join` runs it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from twopc.operators.functions import function_name
from twopc.operators.how import HowBoth, check_join
from twopc.operators.instance import OperatorContext
from twopc.operators.step import InputPort, Step
from twopc.protocol.ids import checked_name
from twopc.serde import Bytes, Json, Serde, checked_state_serde
from twopc.state.forms import AllWaitingOf
from twopc.state.layout import STREAM_TIME, TIMERS

if TYPE_CHECKING:
    from twopc.operators.stream_join import StreamJoin

SIDES = ("left", "right")


@dataclass(frozen=True, slots=True)
class JoinStreams(Step):
    """(value of the one, value of the other) -> value; the key stays as it is"""

    function: Callable[[Any, Any], Any]
    how: HowBoth
    within_ms: int
    grace_ms: int
    name: str
    serdes: tuple[Serde, Serde]
    operator = "join"
    ports = tuple(map(InputPort, SIDES))
    keeps_key = by_key = ports_together = True

    def __post_init__(self) -> None:
        check_join("a join of streams", self.function, self.how, HowBoth)
        checked_name("the name of a join", self.name)
        for side, serde in zip(SIDES, self.serdes, strict=True):
            checked_state_serde(f"state {side!r} of {self}", serde)

    @property
    def states(self) -> Mapping[str, Serde]:
        """The records of each side that wait, and the states of the operator itself."""
        waiting = {side: AllWaitingOf(serde) for side, serde in zip(SIDES, self.serdes, strict=True)}
        return {**waiting, STREAM_TIME: Json(), TIMERS: Bytes()}

    @property
    def state_name(self) -> str:
        return self.name

    def open(self, context: OperatorContext) -> StreamJoin:
        from twopc.operators.stream_join import StreamJoin

        return StreamJoin(self, context)

    def __str__(self) -> str:
        grace = f"grace={self.grace_ms}ms, " if self.grace_ms else ""
        return (
            f"join({function_name(self.function)}, how={self.how!r}, within={self.within_ms}ms, {grace}"
            f"name={self.name!r})"
        )
