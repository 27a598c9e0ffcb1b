"""A copy of a checkpoint that is restored elsewhere, verified while it is made.

What is copied is what was verified; of the original, files that never change may be shared, and nothing is written.
"""

from __future__ import annotations

from twopc.checkpoints.copy import copy_checkpoint, shared
from twopc.checkpoints.files import examine
from twopc.checkpoints.findings import WrongFile
from twopc.checkpoints.reference import LocatedCheckpoint
from twopc.protocol.facts import CheckpointMetadata
from twopc.storage.store import CheckpointStore


def copy_restorable(located: LocatedCheckpoint, into: CheckpointStore) -> tuple[CheckpointMetadata, list[str]]:
    """Copy a checkpoint to a store of the drill's own; return what it restores, and what of its files is damaged.

    Raises CheckpointCorrupted if it can't be told what it restores, and otherwise as `copy_checkpoint` does.
    """
    metadata = located.restorable()
    try:
        copy_checkpoint(located, into, shared)
    except WrongFile as error:
        # By the names that every command gives to damage; what was met is told where it can't be found again.
        findings = examine(located.root, located.job, located.checkpoint_id).findings or [error.finding]
        return metadata, [str(WrongFile(finding)) for finding in findings]
    return metadata, []
