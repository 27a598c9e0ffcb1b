"""One checkpoint, packed with all that restoring it needs, as a checkpoint folder of its own.

    <target>/<job>/ledger/000000000001.json   what the ledger says of these checkpoints, summed up
    <target>/<job>/chk-7/...                  metadata and snapshots, and the same of those that 7 needs

Invariants:

- A copy is there whole, durable and verified, or not at all: it is made under a temporary name.
- Every byte that is copied is compared with what was written down when it was stored, as it is copied.
- The copy holds no link to the original, so that either may be deleted, moved or damaged alone.
- Ids go on where the original's stand, so a job that goes on from a copy never uses one again that is taken.
"""

from __future__ import annotations

import errno
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from twopc.checkpoints.catalog import CheckpointEntry, is_kept
from twopc.checkpoints.files import check_digest, checked_manifest, checked_metadata, needed_by, opened_file
from twopc.checkpoints.findings import Problem, WrongFile
from twopc.checkpoints.reference import Located
from twopc.errors import ConfigurationError, Unavailable
from twopc.protocol.attempt_facts import AttemptEnded
from twopc.protocol.ids import NO_ATTEMPT
from twopc.protocol.layout import FILES, LEDGER, TWINS, entry_name, manifest_of, metadata_path
from twopc.protocol.ledger_place import NOTHING_BEFORE, Place
from twopc.protocol.ledger_state import LedgerState, encode_entry
from twopc.protocol.manifest import Manifest
from twopc.storage import files
from twopc.storage.local_files import copy_open_file

_FIRST = 1
_COPY = "copy"


def copy_checkpoint(located: Located, target: Path) -> None:
    """Make a folder `target`, which must not exist yet, or be empty, of this checkpoint and what it needs.

    Raises CheckpointCorrupted, naming the file, if anything is wrong with the original; ConfigurationError if the
    target is taken; Unavailable if it can't be written.
    """
    refuse_taken(target)
    staging = target.with_name(f"{files.TEMPORARY}{secrets.token_hex(8)}")
    with guarded(located, target, staging):
        stage(located, staging)
        publish(staging, target)


@contextmanager
def guarded(located: Located, target: Path, staging: Path) -> Iterator[None]:
    """Say what went wrong with a copy, and leave nothing of it behind."""
    try:
        yield
    except WrongFile as error:
        _refuse_forgotten(located, error)
        raise
    except OSError as error:
        raise Unavailable(f"the copy can't be written to {target}: {error}") from error
    finally:
        files.discard(staging)


def _refuse_forgotten(located: Located, error: WrongFile) -> None:
    """Raise ConfigurationError if the file is missing because the checkpoint was deleted meanwhile."""
    if error.finding.problem is not Problem.MISSING:
        return
    if not is_kept(located.checkpoint_dir, located.job, located.checkpoint_id):
        raise ConfigurationError(
            f"checkpoint {located.checkpoint_id} of job {located.job!r} was deleted while it was copied: retention "
            "keeps the newest ones. Take a savepoint, which is kept, and copy that"
        ) from error


def refuse_taken(target: Path) -> None:
    """Raise ConfigurationError unless something may be given this name."""
    if target.is_symlink() or (target.exists() and not (target.is_dir() and not any(target.iterdir()))):
        raise ConfigurationError(f"{target} is there already: name a folder that isn't there yet")


def publish(staging: Path, target: Path) -> None:
    """Give what was staged its name; raise ConfigurationError if somebody else was quicker."""
    try:
        files.publish_folder(staging, target)
    except OSError as error:
        if error.errno in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR):
            raise ConfigurationError(f"{target} has been made by somebody else meanwhile") from error
        raise


def stage(located: Located, into: Path) -> None:
    """Fill a new folder: the job's folder in it, durable, with one summary for a ledger."""
    home = into / located.job
    files.make_folder(home)
    entries = needed_by(located.found, located.checkpoint_id)
    for entry in entries:
        _stage_checkpoint(located.job_folder, entry, home)
    _stage_ledger(located, entries, home)


def _stage_ledger(located: Located, entries: tuple[CheckpointEntry, ...], home: Path) -> None:
    state = located.found.state
    completed = tuple(entry.completed for entry in entries if entry.checkpoint_id <= located.checkpoint_id)
    attempt = None if state.attempt is None else replace(state.attempt, restored=located.checkpoint_id)
    ended = AttemptEnded(state.current, False, f"copied at checkpoint {located.checkpoint_id}")
    summary = LedgerState(
        attempt=attempt,
        ended=ended if state.current != NO_ATTEMPT else None,
        last_reserved=state.last_reserved,
        completed=completed,
    )
    data = encode_entry(summary, Place(located.job, _FIRST, NOTHING_BEFORE, _COPY))
    files.make_folder(home / TWINS)
    files.create_once(home / LEDGER / entry_name(_FIRST), data)
    files.link_again(home / LEDGER / entry_name(_FIRST), home / TWINS / entry_name(_FIRST))


def _stage_checkpoint(source: Path, entry: CheckpointEntry, home: Path) -> None:
    name = metadata_path(entry.checkpoint_id)
    metadata, data = checked_metadata(source, entry)
    files.make_folder((home / name).parent)
    files.write_new(home / name, data)
    for snapshot in metadata.snapshots:
        found = checked_manifest(source, metadata, snapshot)
        if found is not None:
            contents, listed = found
            stage_files(source, contents, home)
            files.write_new(home / manifest_of(snapshot.state.path), listed)
    files.disk.sync_folder((home / name).parent)


def stage_files(source: Path, contents: Manifest, home: Path) -> None:
    """Copy the files of a snapshot, verified, but those that another snapshot had already; raise WrongFile."""
    files.make_folder(home / FILES)
    for file in contents.files:
        target = home / file.stored
        if target.exists():
            continue
        with opened_file(source, file.stored, file) as descriptor:
            _, digest = copy_open_file(os.dup(descriptor), target)
        check_digest(source, file.stored, file, digest)
    files.disk.sync_folder(home / FILES)
