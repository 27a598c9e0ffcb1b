"""A moment, as the decisions see it; and how long the phases of a checkpoint took, for people only. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple


class Instant(NamedTuple):
    """One reading of both clocks, in milliseconds.

    Deadlines use `monotonic_ms`, which never jumps and means nothing on another machine; `unix_ms` is for people.
    """

    monotonic_ms: int
    unix_ms: int


@dataclass(frozen=True, slots=True)
class SubtaskTimes:
    """One subtask's part, in milliseconds: all but the last on its own clock, which never jumps.

    pre_commit_ms: from when it took the trigger up to when its transaction was flushed and pre-committed.
    pause_ms: how long its data loop stood still, the pre-commit included.
    write_ms: from then, beside the loop, to when the snapshot was written into a local folder.
    store_ms: from then too, to when the snapshot was in checkpoint storage and was acknowledged.
    acknowledged_ms: from the trigger to the acknowledgement, on the coordinator's clock.
    """

    AS_LIST: ClassVar[bool] = True

    pre_commit_ms: float
    pause_ms: float
    write_ms: float
    store_ms: float
    acknowledged_ms: int

    @property
    def waited_ms(self) -> float:
        """The part of it on the wire, and waiting until the data loop had put its batch through."""
        return max(0.0, self.acknowledged_ms - self.pause_ms - self.store_ms)
