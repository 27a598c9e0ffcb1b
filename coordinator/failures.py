"""How many checkpoints of an attempt have failed in a row. Pure; Flink's CheckpointFailureManager.

Invariants: each id counts once; a completed checkpoint forgives all before it; savepoints and what is no failure of the
checkpoint itself (subsumed, the attempt ended, ...) don't count.
"""

from __future__ import annotations

from twopc.protocol.checkpoints import CheckpointKind, FailureReason
from twopc.protocol.ids import CheckpointId


class ConsecutiveFailures:
    """Counts up to what is tolerable."""

    def __init__(self, tolerable: int) -> None:
        self._tolerable = tolerable
        self._failed: set[CheckpointId] = set()

    def failed(self, checkpoint_id: CheckpointId, kind: CheckpointKind, reason: FailureReason) -> None:
        if reason.counts and kind is not CheckpointKind.SAVEPOINT:
            self._failed.add(checkpoint_id)

    def completed(self) -> None:
        self._failed.clear()

    @property
    def count(self) -> int:
        return len(self._failed)

    @property
    def intolerable(self) -> bool:
        return self.count > self._tolerable
