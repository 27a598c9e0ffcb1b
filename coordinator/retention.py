"""Which completed checkpoints are kept. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from twopc.protocol.checkpoints import CheckpointKind
from twopc.protocol.completed import CompletedCheckpoint
from twopc.protocol.ids import NO_CHECKPOINT, CheckpointId


def to_forget(
    completed: Sequence[CompletedCheckpoint], retained: int, restored: CheckpointId = NO_CHECKPOINT
) -> tuple[CheckpointId, ...]:
    """Return the checkpoints that may be deleted, given the completed ones, oldest first.

    Kept are savepoints; the `retained` newest others; every one after the newest whose commits are all confirmed,
    because its outcome is open, and a subtask whose transaction was lost replays from the last one whose output is
    committed, confirmed or not; that newest confirmed one itself, for the same reason; the `restored` one, which the
    next attempt starts from too if this one completes none; and those that healed subtasks of any of these are restored
    from, since it can be restored only with them.
    """
    confirmed = [each.checkpoint_id for each in completed if not each.outstanding]
    needed_from = confirmed[-1] if confirmed else NO_CHECKPOINT
    ordinary = [each.checkpoint_id for each in completed if each.record.kind is not CheckpointKind.SAVEPOINT]
    candidates = {each for each in ordinary[: max(len(ordinary) - retained, 0)] if each < needed_from}
    candidates.discard(restored)
    for each in reversed(completed):
        # Bases are earlier than what is restored from them, so one pass from the newest finds all.
        if each.checkpoint_id not in candidates:
            candidates.difference_update(each.bases.values())
    return tuple(sorted(candidates))
