"""Which completed checkpoints are kept. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from twopc.protocol.checkpoints import CheckpointKind
from twopc.protocol.ids import CheckpointId
from twopc.protocol.ledger_state import NO_CHECKPOINT, CompletedCheckpoint


def to_forget(completed: Sequence[CompletedCheckpoint], retained: int) -> tuple[CheckpointId, ...]:
    """Return the checkpoints that may be deleted, given the completed ones, oldest first.

    Kept are savepoints; the `retained` newest others; every one after the newest whose commits are all confirmed,
    because its outcome is open, and a subtask whose transaction was lost replays from the last one whose output is
    committed, confirmed or not; that newest confirmed one itself, for the same reason; and those that its healed
    subtasks are restored from, since it can be restored only with them.
    """
    confirmed = [each for each in completed if not each.outstanding]
    needed = [confirmed[-1].checkpoint_id, *confirmed[-1].bases.values()] if confirmed else [NO_CHECKPOINT]
    ordinary = [each.checkpoint_id for each in completed if each.record.kind is not CheckpointKind.SAVEPOINT]
    return tuple(each for each in ordinary[: max(len(ordinary) - retained, 0)] if each < min(needed))
