"""Where a job that has nothing to restore begins to read, as a durable fact. Pure.

A job that starts at the latest record, or at a time, must start where its first attempt did until a checkpoint has
completed, whoever runs it: at today's latest it would skip what came in between.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

from twopc.protocol.facts import SplitPosition
from twopc.protocol.ids import AttemptId


class Witnessed(NamedTuple):
    """The greatest checkpoint, and the greatest attempt, that a consumer group's positions are of; 0 for none."""

    checkpoint: int
    attempt: int


NOTHING_WITNESSED = Witnessed(0, 0)


@dataclass(frozen=True, slots=True)
class StartsPlanned:
    """The starts of an attempt, stored before anything was read from them.

    `mode` is how the job was told to start: who tells it otherwise does not mean these starts. `witnessed` is whose
    positions the consumer group had then: if it has others now, a run with another ledger was there since.
    """

    KIND: ClassVar[str] = "starts-planned"

    attempt: AttemptId
    mode: str
    starts: tuple[SplitPosition, ...]
    witnessed: Witnessed = NOTHING_WITNESSED

    def to_json(self) -> dict[str, Any]:
        return {
            "attempt": self.attempt,
            "mode": self.mode,
            "starts": [start.to_json() for start in self.starts],
            "witnessed": list(self.witnessed),
        }

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> StartsPlanned:
        return cls(
            attempt=AttemptId(int(body["attempt"])),
            mode=str(body["mode"]),
            starts=tuple(SplitPosition.from_json(item) for item in body["starts"]),
            witnessed=Witnessed(*(int(each) for each in body.get("witnessed", NOTHING_WITNESSED))),
        )
