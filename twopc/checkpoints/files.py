"""Every file of a job's checkpoints, checked: what is wrong is named file by file, and nothing is changed.

Invariants:

- Names that are stored decide nothing: a snapshot is looked for where its checkpoint and subtask have their folder, and
  a file of it only under a name that can't lead elsewhere. No symbolic link is followed below the job's folder.
- Every file is read whole, and compared with what was written down when it was stored: by the manifest, which the
  metadata names by its SHA-256, which the completion record names in turn, in a ledger of which each entry names the
  one before.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

from twopc.checkpoints.catalog import CheckpointEntry, JobCheckpoints, read_job
from twopc.checkpoints.findings import Examination, Finding, Problem, WrongFile, refused_fact, refused_ledger, stranger
from twopc.errors import CheckpointCorrupted
from twopc.protocol.facts import CheckpointMetadata, SubtaskSnapshot
from twopc.protocol.ids import CheckpointId
from twopc.protocol.layout import (
    ENTRIES,
    FILES,
    LEDGER,
    checkpoint_folder,
    checkpoint_of_file,
    checkpoint_of_folder,
    entry_path,
    entry_sequence,
    entry_sequences,
    manifest_of,
    metadata_path,
    subtask_folder,
)
from twopc.protocol.ledger_checks import check_metadata, decode_metadata
from twopc.protocol.ledger_state import LedgerState, decode_entry
from twopc.protocol.manifest import Manifest, StoredFile
from twopc.state.changes import Changes
from twopc.storage.store import CheckpointStore, OpenObject

_LOOKS = 3


@dataclass(frozen=True, slots=True)
class JobFiles:
    """The stored files of a job; each is called by the job's name and its own."""

    job: str
    store: CheckpointStore

    def source(self, name: str) -> str:
        return f"{self.job}/{name}"

    def fact(self, name: str, lacking: str) -> bytes:
        """Return a stored fact; raise WrongFile, which says what is lacking without it."""
        try:
            return self.store.get(name)
        except FileNotFoundError as error:
            raise WrongFile(Finding(self.source(name), Problem.MISSING, lacking)) from error
        except CheckpointCorrupted as error:
            raise self.refused(name, error) from error

    def refused(self, name: str, error: CheckpointCorrupted) -> WrongFile:
        """Tell what is wrong with a stored fact that was refused."""
        return refused_fact(self.store, name, self.source(name), error)


def examine(root: CheckpointStore, job: str, only: CheckpointId | None = None) -> Examination:
    """Check a job's ledger, and all its kept checkpoints, or one and those that it can't be restored without.

    Safe beside a running job: what it deletes meanwhile is not missed. Raises ConfigurationError if there is no such
    job, and CheckpointCorrupted never: that is what the findings are for.
    """
    for _ in range(_LOOKS - 1):
        examined = _examine(root, job, only)
        if not any(finding.problem is Problem.MISSING for finding in examined.findings):
            return examined
    return _examine(root, job, only)


def _examine(root: CheckpointStore, job: str, only: CheckpointId | None) -> Examination:
    examined, files = Examination(job), JobFiles(job, root.within(job))
    metadata_of: list[tuple[CheckpointId, Callable[[], tuple[CheckpointMetadata, bytes]]]]
    try:
        found = read_job(root, job)
    except CheckpointCorrupted as error:
        _check_ledger(files, examined)
        if not examined.findings:
            examined.findings.extend(_gaps(files))
        if not examined.findings:
            examined.findings.append(refused_ledger(f"{job}/{LEDGER}", error))
        metadata_of = [
            (number, partial(_metadata_by_itself, files, number))
            for number in sorted(filter(None, map(checkpoint_of_folder, files.store.parts())))
            if only in (None, number) and metadata_path(number) in files.store.names(f"{checkpoint_folder(number)}/")
        ]
    else:
        _check_ledger(files, examined)
        entries = found.completed if only is None else needed_by(found, only)
        metadata_of = [(entry.checkpoint_id, partial(checked_metadata, files, entry)) for entry in entries]
    stored = {name: checkpoint_of_file(name) for name in files.store.names(f"{FILES}/")}
    examined.findings += [stranger(files.source(name)) for name, number in stored.items() if number is None]
    looked_at: set[str] = set()
    for number, read in metadata_of:
        examined.checkpoints.append(number)
        with examined.noting():
            metadata, data = read()
            examined.read(len(data))
            _check_snapshots(files, metadata, examined, looked_at)
    if only is None and not examined.findings:
        newest = max(examined.checkpoints, default=0)
        # Those of later ones may be named by a manifest that is still to come.
        unnamed = [name for name, of in stored.items() if (of or 0) <= newest and name not in looked_at]
        examined.left_over = [*map(files.source, unnamed), *root.left_over()]
    return examined


def needed_by(found: JobCheckpoints, checkpoint_id: CheckpointId) -> tuple[CheckpointEntry, ...]:
    """Return a checkpoint and those that it can't be restored without, ascending."""
    needed = {checkpoint_id}
    for entry in reversed(found.completed):
        if entry.checkpoint_id in needed:
            needed.update(entry.completed.bases.values())
    return tuple(entry for entry in found.completed if entry.checkpoint_id in needed)


def _check_ledger(files: JobFiles, examined: Examination) -> None:
    for name in files.store.names(ENTRIES):
        source, number = files.source(name), entry_sequence(name)
        if number is None:
            examined.findings.append(stranger(source))
            continue
        try:
            data = files.store.get(name)
            place, _ = decode_entry(data, source)
            place.check(files.job, number, None, source)
            examined.read(len(data))
        except FileNotFoundError:
            # A running coordinator has summed it up; what must not be missing, replaying the ledger has missed.
            continue
        except CheckpointCorrupted as error:
            examined.findings.append(files.refused(name, error).finding)


def _gaps(files: JobFiles) -> list[Finding]:
    """Name the entries that are missing between the newest summary, of a ledger of whole entries, and the newest."""
    lost = entry_sequences(files.store.lost(ENTRIES))
    numbers = set(entry_sequences(files.store.names(ENTRIES)))
    newest = max(numbers, default=0)
    first = max((number for number in numbers if _is_summary(files, number)), default=1)
    gaps = {number for number in range(first, newest) if number not in numbers}
    return [
        Finding(files.source(entry_path(number)), Problem.MISSING, "what it says was acted upon")
        for number in sorted(gaps.union(number for number in lost if number > newest))
    ]


def _is_summary(files: JobFiles, number: int) -> bool:
    name = entry_path(number)
    return isinstance(decode_entry(files.store.get(name), name)[1], LedgerState)


def checked_metadata(files: JobFiles, entry: CheckpointEntry) -> tuple[CheckpointMetadata, bytes]:
    """Return the metadata of a checkpoint of a job, decoded and as it is stored; raise WrongFile."""
    name = metadata_path(entry.checkpoint_id)
    data = files.fact(name, "the ledger names it")
    try:
        return check_metadata(files.job, entry.completed.record, data), data
    except CheckpointCorrupted as error:
        raise files.refused(name, error) from error


def _metadata_by_itself(files: JobFiles, number: CheckpointId) -> tuple[CheckpointMetadata, bytes]:
    """The same where there is no ledger to compare it with."""
    name = metadata_path(number)
    data = files.fact(name, "it was there a moment ago")
    try:
        return decode_metadata(data, files.source(name)), data
    except CheckpointCorrupted as error:
        raise files.refused(name, error) from error


def checked_manifest(
    files: JobFiles, metadata: CheckpointMetadata, snapshot: SubtaskSnapshot
) -> tuple[Manifest, bytes] | None:
    """Return the manifest of a snapshot, decoded and as it is stored; None if it has no files. Raises WrongFile."""
    place, state = subtask_folder(metadata.checkpoint_id, snapshot.subtask), snapshot.state
    source = files.source(metadata_path(metadata.checkpoint_id))
    if state.path != place:
        message = f"it names {state.path!r} as the place of subtask {snapshot.subtask}, which is {place}"
        raise WrongFile(Finding(source, Problem.FOREIGN, message))
    if state.items is not None:
        _check_items(state.items, source)
        return None
    name = manifest_of(place)
    data = files.fact(name, "with it, the list of the snapshot's files")
    try:
        return Manifest.acknowledged(data, state, files.source(name)), data
    except CheckpointCorrupted as error:
        raise files.refused(name, error) from error


def _check_items(items: Mapping[str, Any], source: str) -> None:
    try:
        Changes.of_json(items, source, is_whole=True)
    except CheckpointCorrupted as error:
        raise WrongFile(Finding(source, Problem.DAMAGED, str(error))) from error


@contextmanager
def opened_file(files: JobFiles, expected: StoredFile) -> Iterator[OpenObject]:
    """Open a file of a snapshot, whose size is right; raise WrongFile."""
    source = files.source(expected.stored)
    with ExitStack() as until:
        try:
            reading = until.enter_context(files.store.open(expected.stored))
        except FileNotFoundError as error:
            raise WrongFile(Finding(source, Problem.MISSING, "the manifest lists it")) from error
        except (CheckpointCorrupted, OSError) as error:
            message = f"it is not the regular file that was stored: {error}"
            raise WrongFile(Finding(source, Problem.FOREIGN, message)) from error
        if reading.size_bytes != expected.size_bytes:
            problem = Problem.TRUNCATED if reading.size_bytes < expected.size_bytes else Problem.DAMAGED
            message = f"it has {reading.size_bytes} bytes and should have {expected.size_bytes}"
            raise WrongFile(Finding(source, problem, message))
        yield reading


def check_digest(files: JobFiles, expected: StoredFile, digest: str) -> None:
    """Raise WrongFile unless this is the digest of what was stored."""
    if digest != expected.sha256:
        message = "its SHA-256 is not the one in the manifest"
        raise WrongFile(Finding(files.source(expected.stored), Problem.DAMAGED, message))


def _check_snapshots(files: JobFiles, metadata: CheckpointMetadata, examined: Examination, looked_at: set[str]) -> None:
    expected = {metadata_path(metadata.checkpoint_id)}
    for snapshot in metadata.snapshots:
        if snapshot.state.manifest is not None:
            expected.add(manifest_of(subtask_folder(metadata.checkpoint_id, snapshot.subtask)))
        with examined.noting():
            found = checked_manifest(files, metadata, snapshot)
            if found is not None:
                contents, data = found
                examined.read(len(data))
                _check_files(files, contents, examined, looked_at)
    for name in files.store.names(f"{checkpoint_folder(metadata.checkpoint_id)}/"):
        if name not in expected:
            examined.findings.append(stranger(files.source(name)))


def _check_files(files: JobFiles, contents: Manifest, examined: Examination, looked_at: set[str]) -> None:
    """Check the files of a snapshot, but those that another had too."""
    for file in contents.files:
        if file.stored in looked_at:
            continue
        looked_at.add(file.stored)
        with examined.noting(), opened_file(files, file) as reading:
            digest = hashlib.sha256()
            for chunk in reading.chunks:
                digest.update(chunk)
            check_digest(files, file, digest.hexdigest())
            examined.read(file.size_bytes)
