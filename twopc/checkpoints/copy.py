"""One checkpoint, packed with all that restoring it needs, as a store of its own.

    <target>/<job>/ledger/000000000001.json   what the ledger says of these checkpoints, summed up
    <target>/<job>/chk-7/...                  metadata and snapshots, and the same of those that 7 needs

Invariants:

- A copy is there whole, durable and verified, or not at all: its ledger comes last, and without one there is no job.
- What is there already is not replaced, unless a copy of the same checkpoint left it that was interrupted.
- Every byte that is copied is compared with what was written down when it was stored, as it is copied.
- Ids go on where the original's stand, so a job that goes on from a copy never uses one again that is taken.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace

from twopc.checkpoints.catalog import CheckpointEntry, is_kept
from twopc.checkpoints.files import JobFiles, check_digest, checked_manifest, checked_metadata, needed_by, opened_file
from twopc.checkpoints.findings import Problem, WrongFile
from twopc.checkpoints.reference import LocatedCheckpoint
from twopc.errors import ConfigurationError, Unavailable
from twopc.protocol.attempt_facts import AttemptEnded
from twopc.protocol.ids import NO_ATTEMPT
from twopc.protocol.layout import entry_path, manifest_of, metadata_path
from twopc.protocol.ledger_place import NOTHING_BEFORE, LedgerPlace
from twopc.protocol.ledger_state import LedgerState, encode_entry
from twopc.protocol.manifest import StoredFile
from twopc.storage.store import CheckpointStore, Content, has_ledger

_LEDGER = entry_path(1)

ContentOf = Callable[[CheckpointStore, str], Content]
"""The way a copy takes a file from the original: `independent` of it, or `shared` where that spares the bytes."""


def independent(store: CheckpointStore, name: str) -> Content:
    """Return the bytes of a file, so that a copy outlives the original."""
    return store.stream(name)


def shared(store: CheckpointStore, name: str) -> Content:
    """Return a file's content by reference, where the store can share it."""
    return store.content(name)


def copy_checkpoint(located: LocatedCheckpoint, target: CheckpointStore, content: ContentOf = independent) -> None:
    """Make a store, in which there is nothing yet, of this checkpoint and what it needs; as `copy_to_job`."""
    target.prepare()
    if set(target.parts()) - {located.job}:
        raise _taken(target)
    copy_to_job(located, target.within(located.job), content)


def copy_to_job(located: LocatedCheckpoint, job: CheckpointStore, content: ContentOf = independent) -> None:
    """Make this checkpoint, and what it needs, all that there is in a job's store.

    Raises CheckpointCorrupted, naming the file, if anything is wrong with the original; ConfigurationError if something
    else is there; Unavailable if it can't be written.
    """
    with _named_failures(located, job):
        entries = needed_by(located.found, located.checkpoint_id)
        original = JobFiles(located.job, located.store)
        contents = _Contents.of(original, entries)
        if set(job.names()) - contents.names:
            raise _taken(job)
        ledger = encode_entry(_summary(located, entries), LedgerPlace(located.job, 1, NOTHING_BEFORE, job.creator()))
        try:
            job.establish()
            _put_files(original, list(contents.files.values()), job, content)
            job.put(contents.facts.items())
            job.create_once(_LEDGER, ledger)
        except BaseException:
            with suppress(OSError):
                if not has_ledger(job):
                    job.delete_unordered(contents.names)
            raise


@dataclass(frozen=True, slots=True)
class _Contents:
    """The contents of checkpoints: metadata and manifests, and the files that these name, each by its name."""

    facts: dict[str, bytes]
    files: dict[str, StoredFile]

    @classmethod
    def of(cls, original: JobFiles, entries: tuple[CheckpointEntry, ...]) -> _Contents:
        """Read them, checked; raise WrongFile."""
        contents = cls({}, {})
        for entry in entries:
            metadata, contents.facts[metadata_path(entry.checkpoint_id)] = checked_metadata(original, entry)
            for snapshot in metadata.snapshots:
                found = checked_manifest(original, metadata, snapshot)
                if found is not None:
                    manifest, contents.facts[manifest_of(snapshot.state.path)] = found
                    contents.files.update({file.stored: file for file in manifest.files})
        return contents

    @property
    def names(self) -> set[str]:
        return {*self.facts, *self.files}


def _put_files(original: JobFiles, wanted: list[StoredFile], job: CheckpointStore, content: ContentOf) -> None:
    def one_by_one() -> Iterator[tuple[str, Content]]:
        for file in wanted:
            # Opened first, so that what is wrong with the original is not taken for a failure to write.
            with opened_file(original, file):
                yield file.stored, content(original.store, file.stored)

    for file, stored in zip(wanted, job.put(one_by_one()), strict=True):
        check_digest(original, file, stored.sha256)


def _summary(located: LocatedCheckpoint, entries: tuple[CheckpointEntry, ...]) -> LedgerState:
    state = located.found.state
    attempt = None if state.attempt is None else replace(state.attempt, restored=located.checkpoint_id)
    ended = AttemptEnded(state.current, False, f"copied at checkpoint {located.checkpoint_id}")
    return LedgerState(
        attempt=attempt,
        ended=ended if state.current != NO_ATTEMPT else None,
        last_reserved=state.last_reserved,
        completed=tuple(entry.completed for entry in entries),
    )


@contextmanager
def _named_failures(located: LocatedCheckpoint, target: CheckpointStore) -> Iterator[None]:
    try:
        yield
    except WrongFile as error:
        _refuse_forgotten(located, error)
        raise
    except FileExistsError as error:
        raise ConfigurationError(f"{target.place()} has been made by somebody else meanwhile") from error
    except OSError as error:
        raise Unavailable(f"the copy can't be written to {target.place()}: {error}") from error


def _refuse_forgotten(located: LocatedCheckpoint, error: WrongFile) -> None:
    """Raise ConfigurationError if the file is missing because the checkpoint was deleted meanwhile."""
    if error.finding.problem is not Problem.MISSING:
        return
    if not is_kept(located.root, located.job, located.checkpoint_id):
        raise ConfigurationError(
            f"checkpoint {located.checkpoint_id} of job {located.job!r} was deleted while it was copied: retention "
            "keeps the newest ones. Take a savepoint, which is kept, and copy that"
        ) from error


def _taken(target: CheckpointStore) -> ConfigurationError:
    return ConfigurationError(f"{target.place()} is there already, with something in it: name a place that is empty")
