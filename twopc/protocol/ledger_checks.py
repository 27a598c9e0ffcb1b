"""The checks of a job's ledger and checkpoints: what is missing or damaged is named.

The coordinator and every tool that reads a checkpoint folder ask here.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping

from twopc.errors import CheckpointCorrupted, ForeignFile
from twopc.protocol.envelope import decode_body, decode_fact
from twopc.protocol.facts import CheckpointMetadata
from twopc.protocol.layout import LEDGER, checkpoint_folder, checkpoint_of_folder, entry_sequence, metadata_path
from twopc.protocol.ledger_facts import METADATA_KIND, CheckpointCompleted
from twopc.protocol.ledger_state import LedgerState


def decode_metadata(data: bytes, source: str) -> CheckpointMetadata:
    """Read a checkpoint's metadata by itself; raise CheckpointCorrupted, naming `source`, if it can't be trusted."""
    return decode_body(CheckpointMetadata, decode_fact(METADATA_KIND, data, source), METADATA_KIND, source)


def check_metadata(job: str, record: CheckpointCompleted, data: bytes) -> CheckpointMetadata:
    """Read a checkpoint's metadata; raise CheckpointCorrupted unless it is what its completion record names."""
    source = f"{job}/{metadata_path(record.checkpoint_id)}"
    if hashlib.sha256(data).hexdigest() != record.metadata_sha256:
        raise CheckpointCorrupted(
            f"{source} was damaged: its SHA-256 is not the one in the completion record of checkpoint "
            f"{record.checkpoint_id}. To go back to an older checkpoint, name it with --from"
        )
    metadata = decode_metadata(data, source)
    if (metadata.job, metadata.checkpoint_id) != (job, record.checkpoint_id):
        raise ForeignFile(
            f"{source} is checkpoint {metadata.checkpoint_id} of job {metadata.job!r}: it was put here from elsewhere"
        )
    return metadata


def refuse_lost_entries(numbers: Iterable[int], lost: Mapping[str, str], job: str) -> None:
    """Raise CheckpointCorrupted if entries after the last of these are known to be lost; `lost` says where copies are.

    One before the last may have been deleted, with a summary of it stored.
    """
    newest = max(numbers, default=0)
    for name, copy in sorted(lost.items()):
        if (entry_sequence(name) or 0) > newest:
            raise CheckpointCorrupted(
                f"{job}/{name} is missing, and what it says was acted upon: copy it back from its second name, {copy}"
            )


def refuse_unknown_checkpoints(state: LedgerState, folders: Iterable[str], job: str) -> None:
    """Raise CheckpointCorrupted if there are folders of checkpoints whose id the ledger has never reserved."""
    known = (checkpoint_of_folder(name) for name in folders)
    unknown = sorted(each for each in known if each is not None and each > state.last_reserved)
    if unknown:
        raise CheckpointCorrupted(
            f"{job}/{LEDGER} lacks entries: {job}/{checkpoint_folder(unknown[-1])} is there, and no checkpoint after "
            f"{state.last_reserved} was ever reserved. To give the job's past up, remove its whole folder"
        )
