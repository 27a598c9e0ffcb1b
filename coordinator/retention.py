"""The retention of completed checkpoints. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from twopc.protocol.completed_checkpoint import CompletedCheckpoint
from twopc.protocol.ids import NO_CHECKPOINT, CheckpointId


def to_forget(
    completed: Sequence[CompletedCheckpoint], retained: int, restored: CheckpointId = NO_CHECKPOINT
) -> tuple[CheckpointId, ...]:
    """Return the checkpoints that may be deleted, given the completed ones, oldest first.

    Kept are savepoints; the `retained` newest others; those whose global commit is outstanding; every one after the
    newest whose commits are all confirmed, because its outcome is open, and a subtask whose transaction was lost
    replays from the last one whose output is committed, confirmed or not; that newest confirmed one itself, for the
    same reason; the `restored` one, which the next attempt starts from too if this one completes none; and those that
    healed subtasks of any of these are restored from, since it can be restored only with them.
    """
    confirmed = [checkpoint.checkpoint_id for checkpoint in completed if not checkpoint.outstanding]
    needed_from = confirmed[-1] if confirmed else NO_CHECKPOINT
    ordinary = [checkpoint.checkpoint_id for checkpoint in completed if not checkpoint.record.kind.is_savepoint]
    candidates = {each for each in ordinary[: max(len(ordinary) - retained, 0)] if each < needed_from}
    candidates -= {restored, *(checkpoint.checkpoint_id for checkpoint in completed if checkpoint.globally_outstanding)}
    for checkpoint in reversed(completed):
        # Bases are earlier than what is restored from them, so one pass from the newest finds all.
        if checkpoint.checkpoint_id not in candidates:
            candidates.difference_update(checkpoint.bases.values())
    return tuple(sorted(candidates))


def needed_because(
    completed: Sequence[CompletedCheckpoint], checkpoint_id: CheckpointId, restored: CheckpointId = NO_CHECKPOINT
) -> str:
    """Say why a checkpoint can't be deleted although a person asks for it; nothing if it can."""
    ids = [checkpoint.checkpoint_id for checkpoint in completed]
    if checkpoint_id not in ids:
        return f"it is not a completed one; there are: {', '.join(map(str, ids)) or 'none'}"
    if checkpoint_id == ids[-1]:
        return "it is the newest, from which the job goes on"
    if checkpoint_id == restored:
        return "the running attempt was restored from it, and has completed none of its own yet"
    for checkpoint in completed:
        if checkpoint_id == checkpoint.checkpoint_id and checkpoint.globally_outstanding:
            return "its output is still to be committed by a global committer, which a run of the job does"
        if checkpoint_id in checkpoint.bases.values():
            needs = checkpoint.checkpoint_id
            return f"checkpoint {needs} can't be restored without it: lost output is written again from it"
    confirmed = [checkpoint.checkpoint_id for checkpoint in completed if not checkpoint.outstanding]
    if checkpoint_id >= (confirmed[-1] if confirmed else NO_CHECKPOINT):
        return "output of later checkpoints is not committed yet, and may have to be written again from it"
    return ""
