"""The checkpoints that are triggered, and neither completed nor aborted. Pure.

Invariants:
- ids in flight grow in the order of their triggers, and never exceed the allowed number;
- nothing is triggered while a savepoint or a final checkpoint is in flight: a savepoint must not be subsumed by a later
  checkpoint, and after a final trigger nothing is read that another could cover.
"""

from __future__ import annotations

from coordinator.checkpoint import PendingCheckpoint
from twopc.protocol.ids import NO_CHECKPOINT, CheckpointId, SubtaskIndex


class InFlight:
    """Ordered by id, oldest first."""

    def __init__(self) -> None:
        self._pending: dict[CheckpointId, PendingCheckpoint] = {}

    def add(self, pending: PendingCheckpoint) -> None:
        self._pending[pending.checkpoint_id] = pending

    def remove(self, checkpoint_id: CheckpointId) -> PendingCheckpoint | None:
        return self._pending.pop(checkpoint_id, None)

    def find(self, checkpoint_id: CheckpointId) -> PendingCheckpoint | None:
        return self._pending.get(checkpoint_id)

    @property
    def all(self) -> tuple[PendingCheckpoint, ...]:
        return tuple(self._pending.values())

    def has_room(self, concurrent: int) -> bool:
        """Whether another may be triggered."""
        return not self._pending or (
            len(self._pending) < concurrent and not any(pending.exclusive for pending in self._pending.values())
        )

    def whole(self) -> PendingCheckpoint | None:
        """The oldest that all subtasks have acknowledged, if there is one."""
        for pending in self._pending.values():
            if pending.whole:
                return pending
        return None

    def before(self, checkpoint_id: CheckpointId) -> tuple[PendingCheckpoint, ...]:
        return tuple(pending for pending in self.all if pending.checkpoint_id < checkpoint_id)

    def after(self, checkpoint_id: CheckpointId) -> tuple[PendingCheckpoint, ...]:
        return tuple(pending for pending in self.all if pending.checkpoint_id > checkpoint_id)

    def acknowledged_by(self, subtask: SubtaskIndex) -> CheckpointId:
        """The latest of these that this subtask has acknowledged; 0 for none."""
        acknowledged = (pending.checkpoint_id for pending in self.all if pending.has_acknowledged(subtask))
        return max(acknowledged, default=NO_CHECKPOINT)

    @property
    def oldest_trigger(self) -> int | None:
        """When the one that has been in flight longest was triggered, in monotonic milliseconds."""
        for oldest in self._pending.values():
            return oldest.triggered.monotonic_ms
        return None

    def __len__(self) -> int:
        return len(self._pending)
