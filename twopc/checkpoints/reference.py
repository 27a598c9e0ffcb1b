"""Which completed checkpoint a person means: by id, by label, as the latest, or by the path of where it is.

    latest                     the newest completed one of the job
    7, chk-7                   that one
    before-1.2                 the newest with this label
    DIR/JOB/chk-7              that one, in whatever checkpoint folder DIR is
    DIR, DIR/JOB               the newest in a checkpoint folder, as `twopc checkpoints copy` makes one

Reads only. What is meant is looked for, and nothing else: an older checkpoint never stands in for one that is damaged.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from twopc.checkpoints.catalog import CheckpointEntry, JobCheckpoints, find_checkpoint, read_job, restorable
from twopc.checkpoints.damage import read_whole_ledger, refusal
from twopc.errors import CheckpointCorrupted, ConfigurationError
from twopc.protocol.checkpoints import LATEST
from twopc.protocol.facts import CheckpointMetadata
from twopc.protocol.ids import CheckpointId
from twopc.protocol.layout import LEDGER, checkpoint_of_folder
from twopc.storage.local import jobs_in

ARCHIVE_SUFFIX = ".tar"


@dataclass(frozen=True, slots=True)
class Located:
    """One completed checkpoint, and the checkpoint folder that it is in."""

    checkpoint_dir: Path
    found: JobCheckpoints
    entry: CheckpointEntry

    @property
    def job(self) -> str:
        return self.found.job

    @property
    def job_folder(self) -> Path:
        """What the paths of its snapshots are relative to."""
        return self.checkpoint_dir / self.job

    @property
    def checkpoint_id(self) -> CheckpointId:
        return self.entry.checkpoint_id

    @property
    def metadata(self) -> CheckpointMetadata:
        """What is stored of it; raise CheckpointCorrupted, naming all that is wrong with it, if it can't be trusted."""
        if self.entry.metadata is None:
            raise self.refusal(CheckpointCorrupted(self.entry.damage))
        return self.entry.metadata

    def restorable(self) -> CheckpointMetadata:
        """What restoring it restores; raise CheckpointCorrupted as `metadata` does."""
        try:
            return restorable(self.found, self.entry)
        except CheckpointCorrupted as error:
            raise self.refusal(error) from error

    def refusal(self, first: CheckpointCorrupted) -> CheckpointCorrupted:
        """Return the error that names all that is wrong with it, where `first` was the first to be met."""
        return refusal(first, self.checkpoint_dir, self.job, self.checkpoint_id)


def locate(reference: str, checkpoint_dir: Path, job: str | None = None) -> Located:
    """Find the checkpoint that `reference` names; raise ConfigurationError, saying what there is, if it isn't there.

    `job` may be left out where the checkpoint folder holds one only. A path brings its own checkpoint folder.
    """
    number = checkpoint_of_folder(f"chk-{reference.removeprefix('chk-')}")
    if number is None and reference != LATEST and _is_path(reference, checkpoint_dir, job):
        return _at(Path(reference), job)
    try:
        found = read_whole_ledger(checkpoint_dir, job or _only_job(checkpoint_dir))
    except ConfigurationError as error:
        raise ConfigurationError(f"checkpoint {reference} can't be found: {error}") from error
    if reference == LATEST:
        return Located(checkpoint_dir, found, _newest(found, checkpoint_dir))
    if number is not None:
        return Located(checkpoint_dir, found, find_checkpoint(found, number))
    if reference.endswith(ARCHIVE_SUFFIX) and not any(entry.label == reference for entry in found.completed):
        raise ConfigurationError(_no_such_file(reference))
    labelled = [entry for entry in found.completed if reference and entry.label == reference]
    if not labelled:
        labels = ", ".join(sorted({entry.label for entry in found.completed if entry.label})) or "none"
        raise ConfigurationError(
            f'{reference!r} names no checkpoint of job {found.job!r}: give an id, a label, "latest", or the path of a '
            f"checkpoint or of a copy; labels: {labels}"
        )
    return Located(checkpoint_dir, found, labelled[-1])


def _is_path(reference: str, checkpoint_dir: Path, job: str | None) -> bool:
    """A label of the job goes before a file of that name; whatever has a separator is a path."""
    if os.sep in reference:
        return True
    if not reference or not Path(reference).exists():
        return False
    known = jobs_in(checkpoint_dir)
    named = [job] if job is not None else known
    return not any(
        entry.label == reference
        for name in named
        if name in known
        for entry in read_job(checkpoint_dir, name).completed
    )


def _at(path: Path, job: str | None) -> Located:
    # What is there is looked at by its own name: a link may stand for a folder, but not within one.
    folder = path.resolve()
    if folder.name.endswith(ARCHIVE_SUFFIX) and folder.is_file():
        raise ConfigurationError(f"{path} is an archive, and a folder is needed here: unpack it, and name that")
    if path.name.endswith(ARCHIVE_SUFFIX) and not folder.exists():
        raise ConfigurationError(_no_such_file(str(path)))
    if not folder.is_dir():
        raise ConfigurationError(
            f"there is no checkpoint {str(path)!r}: give an id, a label, the path of a chk-<id> folder or of a copy, "
            '"latest" or "none"'
        )
    number = checkpoint_of_folder(folder.name)
    if number is not None:
        found = _job_at(folder.parent, job, path)
        return Located(folder.parent.parent, found, find_checkpoint(found, number))
    home = folder if (folder / LEDGER).is_dir() else folder / (job or _only_job(folder))
    found = _job_at(home, job, path)
    return Located(home.parent, found, _newest(found, home.parent))


def _no_such_file(name: str) -> str:
    return f"there is no file {name!r}, which would be an archive of a checkpoint: is its path right?"


def _job_at(home: Path, job: str | None, path: Path) -> JobCheckpoints:
    if not (home / LEDGER).is_dir():
        raise ConfigurationError(
            f"{path} is not in a checkpoint folder: beside it there is no {home.name}/{LEDGER}. To move a checkpoint, "
            "let `twopc checkpoints copy` pack it"
        )
    if job is not None and home.name != job:
        raise ConfigurationError(f"{path} belongs to job {home.name!r}, not to {job!r}")
    return read_whole_ledger(home.parent, home.name)


def _only_job(checkpoint_dir: Path) -> str:
    if not checkpoint_dir.is_dir():
        raise ConfigurationError(f"there is no checkpoint folder {checkpoint_dir}: name it with --checkpoint-dir")
    found = jobs_in(checkpoint_dir)
    if len(found) != 1:
        which = f"there are {len(found)} jobs ({', '.join(found)}): name one with --job" if found else "there is no job"
        raise ConfigurationError(f"in the checkpoint folder {checkpoint_dir} {which}")
    return found[0]


def _newest(found: JobCheckpoints, checkpoint_dir: Path) -> CheckpointEntry:
    if not found.completed:
        raise ConfigurationError(f"job {found.job!r} in {checkpoint_dir} has no completed checkpoint yet")
    return found.completed[-1]
