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
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import assert_never

from twopc.checkpoints.catalog import CheckpointEntry, JobCheckpoints, read_job
from twopc.checkpoints.findings import Examined, Finding, Problem, WrongFile, refused_fact, refused_ledger, stranger
from twopc.errors import CheckpointCorrupted
from twopc.protocol.envelope import NOT_OF_THIS_SHAPE, decode_fact
from twopc.protocol.facts import CheckpointMetadata, InlineState, StateHandle, SubtaskSnapshot
from twopc.protocol.ids import CheckpointId
from twopc.protocol.layout import (
    FILES,
    LEDGER,
    TWINS,
    checkpoint_folder,
    checkpoint_of_file,
    checkpoint_of_folder,
    entry_name,
    entry_sequence,
    entry_sequences,
    lost_entries,
    manifest_of,
    metadata_path,
    subtask_folder,
)
from twopc.protocol.ledger_checks import check_metadata
from twopc.protocol.ledger_facts import METADATA_KIND
from twopc.protocol.ledger_state import LedgerState, decode_entry
from twopc.protocol.manifest import Manifest, StoredFile
from twopc.state.changes import Changes
from twopc.storage.safe_read import open_below, read_fact

_LOOKS = 3


def examine(checkpoint_dir: Path, job: str, only: CheckpointId | None = None) -> Examined:
    """Check a job's ledger, and all its kept checkpoints, or one and those that it can't be restored without.

    Safe beside a running job: what it deletes meanwhile is not missed. Raises ConfigurationError if there is no such
    job, and CheckpointCorrupted never: that is what the findings are for.
    """
    for _ in range(_LOOKS - 1):
        examined = _examine(checkpoint_dir, job, only)
        if not any(finding.problem is Problem.MISSING for finding in examined.findings):
            return examined
    return _examine(checkpoint_dir, job, only)


def _examine(checkpoint_dir: Path, job: str, only: CheckpointId | None) -> Examined:
    examined, folder = Examined(job), checkpoint_dir / job
    metadata_of: list[tuple[CheckpointId, Callable[[], tuple[CheckpointMetadata, bytes]]]]
    try:
        found = read_job(checkpoint_dir, job)
    except CheckpointCorrupted as error:
        _check_ledger(folder, examined)
        if not examined.findings:
            examined.findings.extend(_gaps(folder))
        if not examined.findings:
            examined.findings.append(refused_ledger(f"{job}/{LEDGER}", error))
        metadata_of = [
            (number, partial(_metadata_by_itself, folder, number))
            for number in sorted(filter(None, map(checkpoint_of_folder, _names(folder))))
            if only in (None, number) and (folder / metadata_path(number)).exists()
        ]
    else:
        _check_ledger(folder, examined)
        entries = found.completed if only is None else needed_by(found, only)
        metadata_of = [(entry.checkpoint_id, partial(checked_metadata, folder, entry)) for entry in entries]
    for name in sorted(_names(folder / FILES)):
        if checkpoint_of_file(f"{FILES}/{name}") is None:
            examined.findings.append(stranger(f"{job}/{FILES}/{name}"))
    looked_at: set[str] = set()
    for number, read in metadata_of:
        examined.checkpoints.append(number)
        with examined.noting():
            metadata, data = read()
            examined.read(len(data))
            _check_snapshots(folder, metadata, examined, looked_at)
    return examined


def needed_by(found: JobCheckpoints, checkpoint_id: CheckpointId) -> tuple[CheckpointEntry, ...]:
    """Return a checkpoint and those that it can't be restored without, ascending."""
    needed = {checkpoint_id}
    for entry in reversed(found.completed):
        if entry.checkpoint_id in needed:
            needed.update(entry.completed.bases.values())
    return tuple(entry for entry in found.completed if entry.checkpoint_id in needed)


def _check_ledger(folder: Path, examined: Examined) -> None:
    for name in sorted(_names(folder / LEDGER)):
        source = f"{folder.name}/{LEDGER}/{name}"
        number = entry_sequence(name)
        if number is None:
            examined.findings.append(stranger(source))
            continue
        try:
            data = read_fact(folder, f"{LEDGER}/{name}", source)
            place, _ = decode_entry(data, source)
            place.check(folder.name, number, None, source)
            examined.read(len(data))
        except FileNotFoundError:
            # A running coordinator has summed it up; what must not be missing, replaying the ledger has missed.
            continue
        except CheckpointCorrupted as error:
            examined.findings.append(refused_fact(folder, f"{LEDGER}/{name}", error).finding)


def _gaps(folder: Path) -> list[Finding]:
    """Name the entries that are missing between the newest summary, of a ledger of whole entries, and the newest."""
    names, twins = _names(folder / LEDGER), _names(folder / TWINS)
    numbers = set(entry_sequences(names))
    first = max((number for number in numbers if _is_summary(folder, number)), default=1)
    gaps = {number for number in range(first, max(numbers, default=0)) if number not in numbers}
    return [
        Finding(f"{folder.name}/{LEDGER}/{entry_name(number)}", Problem.MISSING, "what it says was acted upon")
        for number in sorted(gaps.union(lost_entries(names, twins)))
    ]


def _is_summary(folder: Path, number: int) -> bool:
    name = f"{LEDGER}/{entry_name(number)}"
    return isinstance(decode_entry(read_fact(folder, name, name), name)[1], LedgerState)


def checked_metadata(folder: Path, entry: CheckpointEntry) -> tuple[CheckpointMetadata, bytes]:
    """Return the metadata of a checkpoint in a job's folder, decoded and as it is stored; raise WrongFile."""
    name = metadata_path(entry.checkpoint_id)
    data = _fact(folder, name, "the ledger names it")
    try:
        return check_metadata(folder.name, entry.completed.record, data), data
    except CheckpointCorrupted as error:
        raise refused_fact(folder, name, error) from error


def _metadata_by_itself(folder: Path, number: CheckpointId) -> tuple[CheckpointMetadata, bytes]:
    """The same where there is no ledger to compare it with."""
    name = metadata_path(number)
    data = _fact(folder, name, "it was there a moment ago")
    try:
        return CheckpointMetadata.from_json(decode_fact(METADATA_KIND, data, f"{folder.name}/{name}")), data
    except NOT_OF_THIS_SHAPE as error:
        raise WrongFile(Finding(f"{folder.name}/{name}", Problem.DAMAGED, repr(error))) from error
    except CheckpointCorrupted as error:
        raise refused_fact(folder, name, error) from error


def checked_manifest(
    folder: Path, metadata: CheckpointMetadata, snapshot: SubtaskSnapshot
) -> tuple[Manifest, bytes] | None:
    """Return the manifest of a snapshot, decoded and as it is stored; None if it has no files. Raises WrongFile."""
    place, state = subtask_folder(metadata.checkpoint_id, snapshot.subtask), snapshot.state
    source = f"{folder.name}/{metadata_path(metadata.checkpoint_id)}"
    if state.path != place:
        message = f"it names {state.path!r} as the place of subtask {snapshot.subtask}, which is {place}"
        raise WrongFile(Finding(source, Problem.FOREIGN, message))
    match state:
        case StateHandle():
            return read_manifest(folder, state)
        case InlineState():
            _check_items(state, source)
            return None
    assert_never(state)


def _check_items(state: InlineState, source: str) -> None:
    try:
        Changes.from_json(state.items, source, is_whole=True)
    except CheckpointCorrupted as error:
        raise WrongFile(Finding(source, Problem.DAMAGED, str(error))) from error


def read_manifest(folder: Path, handle: StateHandle) -> tuple[Manifest, bytes]:
    """Return a snapshot's manifest in a job's folder, decoded and as it is stored; raise WrongFile."""
    name = manifest_of(handle.path)
    data = _fact(folder, name, "with it, the list of the snapshot's files")
    try:
        contents = Manifest.decode(data, f"{folder.name}/{name}")
    except CheckpointCorrupted as error:
        raise refused_fact(folder, name, error) from error
    if hashlib.sha256(data).hexdigest() != handle.manifest_sha256:
        message = "it is whole, and not the one that the subtask acknowledged"
        raise WrongFile(Finding(f"{folder.name}/{name}", Problem.FOREIGN, message))
    return contents, data


@contextmanager
def opened_file(folder: Path, name: str, expected: StoredFile) -> Iterator[int]:
    """Open a file of a snapshot, whose size is right; raise WrongFile."""
    source = f"{folder.name}/{name}"
    with ExitStack() as until:
        try:
            descriptor = until.enter_context(open_below(folder, name, source))
        except FileNotFoundError as error:
            raise WrongFile(Finding(source, Problem.MISSING, "the manifest lists it")) from error
        except OSError as error:
            message = f"it is not the regular file that was stored: {error.strerror}"
            raise WrongFile(Finding(source, Problem.FOREIGN, message)) from error
        size = os.fstat(descriptor).st_size
        if size != expected.size_bytes:
            problem = Problem.TRUNCATED if size < expected.size_bytes else Problem.DAMAGED
            raise WrongFile(Finding(source, problem, f"it has {size} bytes and should have {expected.size_bytes}"))
        yield descriptor


def check_digest(folder: Path, name: str, expected: StoredFile, digest: str) -> None:
    """Raise WrongFile unless this is the digest of what was stored."""
    if digest != expected.sha256:
        message = "its SHA-256 is not the one in the manifest"
        raise WrongFile(Finding(f"{folder.name}/{name}", Problem.DAMAGED, message))


def _check_snapshots(folder: Path, metadata: CheckpointMetadata, examined: Examined, looked_at: set[str]) -> None:
    own = checkpoint_folder(metadata.checkpoint_id)
    expected = {Path(metadata_path(metadata.checkpoint_id)).name}
    for snapshot in metadata.snapshots:
        if isinstance(snapshot.state, StateHandle):
            expected.add(Path(manifest_of(subtask_folder(metadata.checkpoint_id, snapshot.subtask))).name)
        with examined.noting():
            found = checked_manifest(folder, metadata, snapshot)
            if found is not None:
                contents, data = found
                examined.read(len(data))
                _check_files(folder, contents, examined, looked_at)
    for name in sorted(_names(folder / own) - expected):
        examined.findings.append(stranger(f"{folder.name}/{own}/{name}"))


def _check_files(folder: Path, contents: Manifest, examined: Examined, looked_at: set[str]) -> None:
    """Check the files of a snapshot, but those that another had too."""
    for file in contents.files:
        name = file.stored
        if name in looked_at:
            continue
        looked_at.add(name)
        with examined.noting(), opened_file(folder, name, file) as descriptor:
            with os.fdopen(os.dup(descriptor), "rb", 0) as reading:
                check_digest(folder, name, file, hashlib.file_digest(reading, "sha256").hexdigest())
            examined.read(file.size_bytes)


def _fact(folder: Path, name: str, lacking: str) -> bytes:
    source = f"{folder.name}/{name}"
    try:
        return read_fact(folder, name, source)
    except FileNotFoundError as error:
        raise WrongFile(Finding(source, Problem.MISSING, lacking)) from error
    except CheckpointCorrupted as error:
        raise refused_fact(folder, name, error) from error


def _names(folder: Path) -> set[str]:
    """What is in a folder, but for what an interrupted write may have left there."""
    try:
        return {name for name in os.listdir(folder) if not name.startswith(".")}
    except (FileNotFoundError, NotADirectoryError):
        return set()
