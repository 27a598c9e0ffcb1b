"""References to a completed checkpoint: by id, by label, as the latest, or by where it is.

    latest                     the newest completed one of the job
    7, chk-7                   that one
    before-1.2                 the newest with this label
    DIR/JOB/chk-7              that one, in whatever checkpoint folder DIR is
    DIR, DIR/JOB               the newest in a checkpoint folder, as `twopc checkpoints copy` makes one

Reads only. What is meant is looked for, and nothing else: an older checkpoint never stands in for one that is damaged.
"""

from __future__ import annotations

from dataclasses import dataclass

from twopc.checkpoints.catalog import CheckpointEntry, JobCheckpoints, find_checkpoint, read_job, restorable
from twopc.checkpoints.damage import read_whole_ledger, refusal
from twopc.errors import CheckpointCorrupted, ConfigurationError
from twopc.protocol.checkpoints import LATEST
from twopc.protocol.facts import CheckpointMetadata
from twopc.protocol.ids import CheckpointId
from twopc.protocol.layout import LEDGER, checkpoint_of_folder
from twopc.storage.open import open_store
from twopc.storage.store import CheckpointStore, has_ledger, jobs_in

ARCHIVE_SUFFIX = ".tar"


@dataclass(frozen=True, slots=True)
class LocatedCheckpoint:
    """One completed checkpoint, and the store that it is in."""

    root: CheckpointStore
    found: JobCheckpoints
    entry: CheckpointEntry

    @property
    def job(self) -> str:
        return self.found.job

    @property
    def store(self) -> CheckpointStore:
        """The job's part, which the names of its snapshots are in."""
        return self.root.within(self.job)

    @property
    def checkpoint_id(self) -> CheckpointId:
        return self.entry.checkpoint_id

    @property
    def metadata(self) -> CheckpointMetadata:
        """Return its stored metadata; raise CheckpointCorrupted, which names all that is wrong, if it is damaged."""
        if self.entry.metadata is None:
            raise self.refusal(CheckpointCorrupted(self.entry.damage))
        return self.entry.metadata

    def restorable(self) -> CheckpointMetadata:
        """Return the metadata that a restore uses; raise CheckpointCorrupted as `metadata` does."""
        try:
            return restorable(self.found, self.entry)
        except CheckpointCorrupted as error:
            raise self.refusal(error) from error

    def refusal(self, first: CheckpointCorrupted) -> CheckpointCorrupted:
        """Return the error that names all that is wrong with it, where `first` was the first to be met."""
        return refusal(first, self.root, self.job, self.checkpoint_id)


def locate(reference: str, root: CheckpointStore, job: str | None = None) -> LocatedCheckpoint:
    """Find the checkpoint that `reference` names; raise ConfigurationError, saying what there is, if it isn't there.

    `job` may be left out where the store holds one only. A path, or a URL, brings its own store.
    """
    number = checkpoint_of_folder(f"chk-{reference.removeprefix('chk-')}")
    if number is None and reference != LATEST and _is_elsewhere(reference, root, job):
        return _at(reference, job)
    try:
        found = read_whole_ledger(root, job or _only_job(root))
    except ConfigurationError as error:
        raise ConfigurationError(f"checkpoint {reference} can't be found: {error}") from error
    if reference == LATEST:
        return LocatedCheckpoint(root, found, _newest(found, root))
    if number is not None:
        return LocatedCheckpoint(root, found, find_checkpoint(found, number))
    if reference.endswith(ARCHIVE_SUFFIX) and not any(entry.label == reference for entry in found.completed):
        raise ConfigurationError(_no_such_file(reference))
    labelled = [entry for entry in found.completed if reference and entry.label == reference]
    if not labelled:
        labels = ", ".join(sorted({entry.label for entry in found.completed if entry.label})) or "none"
        raise ConfigurationError(
            f'{reference!r} names no checkpoint of job {found.job!r}: give an id, a label, "latest", or the path of a '
            f"checkpoint or of a copy; labels: {labels}"
        )
    return LocatedCheckpoint(root, found, labelled[-1])


def _is_elsewhere(reference: str, root: CheckpointStore, job: str | None) -> bool:
    """A label of the job goes before a store of that name; whatever has a separator names a store."""
    if "/" in reference:
        return True
    if not reference or not open_store(reference).parts():
        return False
    known = jobs_in(root)
    named = [job] if job is not None else known
    return not any(
        entry.label == reference for name in named if name in known for entry in read_job(root, name).completed
    )


def _at(reference: str, job: str | None) -> LocatedCheckpoint:
    there = open_store(reference)
    # By its own name: a link may stand for a store, but not within one.
    above, _, name = there.identity.rpartition("/")
    if not there.parts():
        if name.endswith(ARCHIVE_SUFFIX):
            raise ConfigurationError(_no_such_file(reference))
        raise ConfigurationError(
            f"there is no checkpoint {reference!r}: give an id, a label, the path of a chk-<id> folder or of a copy, "
            '"latest" or "none"'
        )
    number = checkpoint_of_folder(name)
    if number is not None:
        root_of_it, _, owner = above.rpartition("/")
        found = _job_at(open_store(root_of_it), owner, job, reference)
        return LocatedCheckpoint(open_store(root_of_it), found, find_checkpoint(found, number))
    root, owner = (open_store(above), name) if has_ledger(there) else (there, job or _only_job(there))
    found = _job_at(root, owner, job, reference)
    return LocatedCheckpoint(root, found, _newest(found, root))


def _no_such_file(name: str) -> str:
    return f"there is no file {name!r}, which would be an archive of a checkpoint: is its path right?"


def _job_at(root: CheckpointStore, owner: str, job: str | None, reference: str) -> JobCheckpoints:
    if not has_ledger(root.within(owner)):
        raise ConfigurationError(
            f"{reference} is not in a checkpoint folder: beside it there is no {owner}/{LEDGER}. To move a checkpoint, "
            "let `twopc checkpoints copy` pack it"
        )
    if job is not None and owner != job:
        raise ConfigurationError(f"{reference} belongs to job {owner!r}, not to {job!r}")
    return read_whole_ledger(root, owner)


def _only_job(root: CheckpointStore) -> str:
    found = jobs_in(root)
    if not found:
        raise ConfigurationError(f"in the checkpoint folder {root.place()} there is no job: see --checkpoint-dir")
    if len(found) > 1:
        raise ConfigurationError(
            f"in the checkpoint folder {root.place()} there are {len(found)} jobs ({', '.join(found)}): name one with "
            "--job"
        )
    return found[0]


def _newest(found: JobCheckpoints, root: CheckpointStore) -> CheckpointEntry:
    if not found.completed:
        raise ConfigurationError(f"job {found.job!r} in {root.place()} has no completed checkpoint yet")
    return found.completed[-1]
