"""A copy of a checkpoint that is restored elsewhere, verified while it is made.

The copy holds the whole ledger, the metadata of every checkpoint that is kept, and the state that restoring the chosen
one needs. What is copied is what was verified; of the original, files that never change may be linked, and nothing is
written.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from twopc.checkpoints.catalog import JobCheckpoints, find_checkpoint, is_kept, read_beside, read_job, restorable
from twopc.checkpoints.copy import stage_files
from twopc.checkpoints.files import examine, read_manifest
from twopc.checkpoints.findings import WrongFile
from twopc.checkpoints.reference import Located
from twopc.errors import CheckpointCorrupted, Unavailable
from twopc.protocol.facts import CheckpointMetadata, InlineState
from twopc.protocol.ids import CheckpointId
from twopc.protocol.layout import LEDGER, manifest_of, metadata_path


def copy_restorable(located: Located, into: Path) -> tuple[JobCheckpoints, CheckpointMetadata, list[str]]:
    """Copy a checkpoint below `into`; return all that are kept, what it restores, and what of its state is damaged.

    Raises CheckpointCorrupted if it can't be told what it restores; Unavailable as `copy_state` does.
    """
    root, chosen = located.checkpoint_dir, located.checkpoint_id
    found = copy_ledger(root, located.job, into)
    try:
        metadata = restorable(found, find_checkpoint(found, chosen))
    except CheckpointCorrupted as error:
        raise located.refusal(error) from error
    return found, metadata, copy_state(root, metadata, chosen, into)


def copy_ledger(root: Path, job: str, into: Path) -> JobCheckpoints:
    """Copy a job's ledger and metadata below `into`, and read the copy: what the drill goes by from then on.

    A running job adds entries and deletes old ones meanwhile; so a copy that doesn't fit together is made again. Raises
    ConfigurationError if there is no such job, CheckpointCorrupted if its ledger can't be trusted.
    """
    return read_beside(root / job, lambda: _copied(root, job, into))


def _copied(root: Path, job: str, into: Path) -> JobCheckpoints:
    found = read_job(root, job)
    source, target = root / job, into / job
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True, mode=0o700)
    shutil.copytree(source / LEDGER, target / LEDGER, symlinks=True)
    for entry in found.completed:
        if entry.metadata is not None:
            name = metadata_path(entry.checkpoint_id)
            (target / name).parent.mkdir(mode=0o700)
            shutil.copyfile(source / name, target / name)
    copied = read_job(into, job)
    if [entry.checkpoint_id for entry in copied.completed] != [entry.checkpoint_id for entry in found.completed]:
        raise CheckpointCorrupted(f"the ledger of job {job!r} changed while it was copied")
    return copied


def copy_state(root: Path, metadata: CheckpointMetadata, chosen: CheckpointId, into: Path) -> list[str]:
    """Copy the state of every subtask, verified; return what is damaged, in words.

    Raises Unavailable if the checkpoint was deleted by the running job meanwhile.
    """
    source, target = root / metadata.job, into / metadata.job
    findings: list[str] = []
    for snapshot in metadata.snapshots:
        state = snapshot.state
        if isinstance(state, InlineState):
            # The metadata has it, and that is copied with the ledger.
            continue
        try:
            contents, listed = read_manifest(source, state)
            stage_files(source, contents, target)
            place = target / manifest_of(state.path)
            place.parent.mkdir(mode=0o700, exist_ok=True)
            place.write_bytes(listed)
        except CheckpointCorrupted as error:
            findings.append(f"subtask {snapshot.subtask}: {error}")
    if findings and not is_kept(root, metadata.job, chosen):
        raise Unavailable(
            f"checkpoint {chosen} of job {metadata.job!r} was deleted while it was copied: the running job keeps its "
            "newest only. Drill a newer one, or a savepoint, or raise checkpoints_retained"
        )
    # By the names that every command gives to damage; what was met is told where it can't be found again.
    examined = examine(root, metadata.job, chosen).findings if findings else []
    return [str(WrongFile(finding)) for finding in examined] or findings
