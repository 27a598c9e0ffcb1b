"""The plan of a restore: the checkpoints that an attempt settles, restores, heals from and commits globally."""

from __future__ import annotations

import logging

from coordinator.ledger import Ledger
from coordinator.requests import checkpoint_to_restore
from twopc.errors import CheckpointCorrupted
from twopc.listing import listed
from twopc.protocol.attempts import GlobalCommit
from twopc.protocol.completed_checkpoint import CompletedCheckpoint
from twopc.protocol.facts import CheckpointMetadata, in_order
from twopc.protocol.healing import restored_from
from twopc.protocol.ids import CheckpointId

log = logging.getLogger(__name__)


def plan_restore(ledger: Ledger, restore_from: str) -> tuple[CheckpointMetadata | None, CheckpointMetadata | None]:
    """The latest completed checkpoint, to settle, and the one to restore.

    Where the latest can't be read, it takes a person who names another (or none) to go on without it.
    """
    wanted = checkpoint_to_restore(ledger.state, restore_from)
    try:
        restored = _restorable(ledger, wanted) if wanted else None
    except CheckpointCorrupted as error:
        raise CheckpointCorrupted(f"{error}. {_way_back(ledger, wanted)}") from error
    newest = ledger.state.newest
    if newest is None:
        return None, restored
    if newest.checkpoint_id == wanted:
        return ledger.metadata(wanted), restored
    try:
        return ledger.metadata(newest.checkpoint_id), restored
    except CheckpointCorrupted as error:
        log.warning("going on without the latest checkpoint, as asked by --from %s: %s", restore_from, error)
        return restored, restored


def _way_back(ledger: Ledger, damaged: CheckpointId) -> str:
    """The ways out for a person where a checkpoint can't be read, and what comes of each."""
    older = [checkpoint.checkpoint_id for checkpoint in ledger.state.completed if checkpoint.checkpoint_id < damaged]
    for checkpoint_id in reversed(older):
        try:
            found = _restorable(ledger, checkpoint_id)
        except CheckpointCorrupted:
            continue
        positions = listed(f"from {held} on" for held in in_order(found.positions))
        return (
            f"Nothing older is restored by itself, because the output is out already. --from {checkpoint_id} restores "
            f"the last one that can be read; readers will then see the output of this input twice, up to where it was "
            f"written: {positions}"
        )
    return "No older checkpoint can be read either; --from none starts afresh"


def _restorable(ledger: Ledger, wanted: CheckpointId) -> CheckpointMetadata:
    """A completed checkpoint, with its healed subtasks' snapshots from where they write their output again."""
    metadata, completed = ledger.metadata(wanted), ledger.state.find(wanted)
    bases = completed.bases if completed is not None else {}
    kept = [ledger.metadata(base) for base in sorted(set(bases.values())) if ledger.state.find(base) is not None]
    return restored_from(metadata, bases, kept)


def earlier_checkpoints(ledger: Ledger, newest: CompletedCheckpoint | None) -> tuple[CheckpointMetadata, ...]:
    """The readable checkpoints from which a loss in the newest could be written again."""
    if newest is None or not newest.outstanding:
        return ()
    found = []
    for checkpoint in ledger.state.completed:
        if checkpoint.checkpoint_id == newest.checkpoint_id:
            continue
        try:
            found.append(_restorable(ledger, checkpoint.checkpoint_id))
        except CheckpointCorrupted as error:
            log.warning("checkpoint %d can't serve to heal a loss: %s", checkpoint.checkpoint_id, error)
    return tuple(found)


def next_global_commit(ledger: Ledger) -> GlobalCommit | None:
    """The next global commit; None where they have committed everything that has completed."""
    due = ledger.state.next_global_commit
    if due is None:
        return None
    committables = ledger.metadata(due.checkpoint_id).committables
    return GlobalCommit.of(
        due.checkpoint_id, tuple(item for item in committables if item.name in due.globally_outstanding)
    )
