"""When checkpoints are due. Pure arithmetic on monotonic milliseconds."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from twopc.protocol.attempts import CheckpointSettings

RETRY_FINAL_MS = 1_000
"""The longest wait before a final checkpoint that was aborted is tried again."""


def earliest(times: Iterable[int | None]) -> int | None:
    """The first of those that there are; None if there is none."""
    found: int | None = None
    for time in times:
        if time is not None and (found is None or time < found):
            found = time
    return found


@dataclass(slots=True)
class Schedule:
    """The times that decide when the next checkpoint is due. `ready` is when all subtasks were attached first."""

    settings: CheckpointSettings
    ready: int | None = None
    triggered: int | None = None
    ended: int | None = None
    ended_badly: bool = False

    def completed(self, now: int) -> None:
        """A checkpoint has completed."""
        self.ended, self.ended_badly = now, False

    def failed(self, now: int) -> None:
        """A checkpoint has failed: the next waits for a whole interval again, so that no failure is repeated fast."""
        self.triggered = self.ended = now
        self.ended_badly = True

    def next_periodic(self) -> int | None:
        """An interval after the last trigger, and the minimum pause after the last end; None before all attached."""
        if self.ready is None:
            return None
        due = (self.ready if self.triggered is None else self.triggered) + self.settings.interval_ms
        if self.ended is not None:
            due = max(due, self.ended + self.settings.min_pause_ms)
        return due

    def next_final(self) -> int | None:
        """At once, whatever interval and pause say; after an aborted one, a moment later."""
        if self.ready is None:
            return None
        if self.ended is None or not self.ended_badly:
            return self.ready
        return self.ended + min(self.settings.interval_ms, RETRY_FINAL_MS)

    def expires(self, triggered: int) -> int:
        """When a checkpoint triggered then has taken too long."""
        return triggered + self.settings.timeout_ms
