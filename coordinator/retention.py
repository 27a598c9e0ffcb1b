"""Which completed checkpoints are kept. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from twopc.protocol.ids import CheckpointId
from twopc.protocol.ledger_state import CompletedCheckpoint

RETAINED = 3
"""How many of the newest completed checkpoints are always kept."""


def to_forget(completed: Sequence[CompletedCheckpoint], retained: int = RETAINED) -> tuple[CheckpointId, ...]:
    """Return the checkpoints that may be deleted, given the completed ones, oldest first.

    Kept are the newest ones; every one after the newest whose commits are all confirmed, because its outcome is open;
    and that newest confirmed one itself, because a subtask whose transaction was lost replays from it.
    """
    confirmed = [index for index, each in enumerate(completed) if not each.outstanding]
    newest_confirmed = confirmed[-1] if confirmed else 0
    first_kept = min(max(len(completed) - retained, 0), newest_confirmed)
    return tuple(each.checkpoint_id for each in completed[:first_kept])
