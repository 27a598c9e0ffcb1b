"""The planned starts of a job that has nothing to restore, as a durable fact. Pure.

A job that starts at the latest record, or at a time, must start where its first attempt did until a checkpoint has
completed, whoever runs it: at today's latest it would skip what came in between.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

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
