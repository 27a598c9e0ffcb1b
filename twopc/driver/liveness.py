"""The liveness of a job's parts: after a stop it tells whether a last checkpoint can still come. Pure.

A last checkpoint needs every subtask, the coordinator and the brokers. The requester of the stop waits for it, and
may be a machine that soon ends everything by force: where one of these has been away for `PATIENCE_SECONDS`, the job
ends without it. Nothing is lost then: the next start goes on from the checkpoint before.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from twopc import events
from twopc.errors import Unavailable
from twopc.protocol.ids import NO_CHECKPOINT, CheckpointId, SubtaskIndex

PATIENCE_SECONDS = 10.0

NOTHING_LOST = "Nothing is lost: the next start goes on from the last completed checkpoint"


class StoppedWithoutCheckpoint(Unavailable):
    """A stop that was asked for ends the job without its last checkpoint, and why; nothing is lost by that."""

    def __init__(self, why: str) -> None:
        super().__init__(f"{why}. {NOTHING_LOST}")


@dataclass(slots=True)
class Liveness:
    """The liveness of an attempt's subtasks, and of its last checkpoint, by its events. Times are monotonic seconds."""

    attached: set[SubtaskIndex] = field(default_factory=set)
    heard_at: dict[SubtaskIndex, float] = field(default_factory=dict)
    last_failed: str = ""
    last_completed: CheckpointId = NO_CHECKPOINT
    last_completed_at: float | None = None
    last_is_committed: bool = False
    """By all subtasks: what global committers have to do may still be outstanding."""

    def note(self, event: events.CoordinatorEvent, now: float) -> None:
        """Take in one event of the attempt."""
        if isinstance(event, events.SubtaskEvent):
            self.heard_at[event.subtask] = now
        match event:
            case events.SubtaskAttached():
                self.attached.add(event.subtask)
            case events.CheckpointAborted() if event.final:
                self.last_failed = event.message
            case events.CheckpointCompleted() if event.final:
                self.last_completed, self.last_completed_at = event.checkpoint_id, now
            case events.CheckpointConfirmed() if self.last_completed_at is not None:
                self.last_is_committed = event.checkpoint_id >= self.last_completed


def hopeless(seen: Liveness, parallelism: int, asked_at: float, now: float, *, accepted: bool) -> str | None:
    """Say why a last checkpoint won't come, or not to its end; None while it may.

    `accepted`: the coordinator knows of the stop.
    """
    if now - asked_at < PATIENCE_SECONDS:
        return None
    if seen.last_completed_at is not None:
        late = now - seen.last_completed_at >= PATIENCE_SECONDS
        return f"stopped before the output of the last checkpoint was committed: {_slow_commit(seen)}" if late else None
    why = _unlikely(seen, parallelism, now, accepted=accepted)
    return None if why is None else f"stopped without a last checkpoint: {why}"


def _slow_commit(seen: Liveness) -> str:
    if seen.last_is_committed:
        return "it is complete, but the global commit of a sink takes longer than that: the next start makes it"
    return "it is complete, but the brokers do not commit its output now: the next start will"


def _unlikely(seen: Liveness, parallelism: int, now: float, *, accepted: bool) -> str | None:
    if not accepted:
        return "the coordinator does not answer"
    if len(seen.attached) < parallelism:
        return f"{len(seen.attached)} of {parallelism} subtasks have started"
    silent = [index for index, at in sorted(seen.heard_at.items()) if now - at >= PATIENCE_SECONDS]
    if silent:
        named = ", ".join(map(str, silent[:10]))
        return f"nothing was heard of subtask {named} for {PATIENCE_SECONDS:.0f} s: brokers away, or a slow function"
    return f"it failed ({seen.last_failed})" if seen.last_failed else None
