"""Checkpoint storage on a file system: where snapshots are put, and fetched from.

Invariants:

- A snapshot is visible under its name only when it is whole and durable: written to a temporary name, every new file
  and folder fsynced, then renamed. A crash leaves a temporary folder and no snapshot.
- A failed write or fsync loses the snapshot and declines the checkpoint. A file whose fsync failed is never linked
  again, because a second fsync may succeed over lost pages: its bytes are copied to a new file instead.
- SST files never change, so they are hard-linked: from the subtask's folder, or from its snapshot before, or else
  copied. All other files are copied, in both directions: a running RocksDB writes to its own.
- Where a snapshot is the whole one before and what was written since, it has all files of that one, linked: in the
  checkpoint folder nothing changes.
- What is fetched is verified where it will be opened, before it is opened: names, types, sizes and digests. A state
  that stands in the metadata was verified with that.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import assert_never

from twopc.errors import CheckpointCorrupted, CheckpointDeclined, ProtocolViolation, Unavailable
from twopc.faults.points import CrashPoint, reached
from twopc.protocol.facts import InlineState, StateHandle
from twopc.protocol.ids import CheckpointId, SubtaskIndex
from twopc.protocol.layout import MANIFEST, subtask_folder
from twopc.state import changes, layout
from twopc.state.manifest import Manifest, StoredFile
from twopc.state.shared_folder import not_here
from twopc.storage import files
from twopc.storage.local_files import FileIdentity, copy_file, digest_of, link_file, seal_file
from twopc.storage.safe_read import read_fact

_IMMUTABLE_SUFFIX = ".sst"


@dataclass(frozen=True, slots=True)
class _Stored:
    """A snapshot that this process put, from which the next may link; `base` is the whole one that it stands on."""

    folder: Path
    base: CheckpointId
    files: tuple[StoredFile, ...]

    def digest_of(self, name: str) -> str | None:
        return next((file.sha256 for file in self.files if file.name == name), None)


class CheckpointStorage:
    """Snapshots of one job, under `root`, the job's checkpoint folder, which is never made here.

    Used by one thread at a time.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._digests: dict[SubtaskIndex, dict[FileIdentity, str]] = {}
        self._previous: dict[SubtaskIndex, _Stored] = {}
        self._unsynced: dict[FileIdentity, str] = {}

    def put(
        self, checkpoint_id: CheckpointId, subtask: SubtaskIndex, local_folder: Path, key_count: int
    ) -> StateHandle:
        """Store the files of `local_folder`, incrementally; raise CheckpointDeclined if the disk refuses."""
        fill = partial(self._fill, checkpoint_id, subtask, local_folder)
        return self._put(checkpoint_id, subtask, checkpoint_id, key_count, fill)

    def put_changes(
        self, checkpoint_id: CheckpointId, subtask: SubtaskIndex, base: CheckpointId, written: bytes, key_count: int
    ) -> StateHandle:
        """Store what `base`, a snapshot that was put whole, has, and what was written since.

        Raises CheckpointDeclined if the disk refuses, or the snapshot that was put last doesn't stand on `base`.
        """
        previous = self._previous.get(subtask)
        if previous is None or previous.base != base:
            raise CheckpointDeclined(
                f"the snapshot of subtask {subtask} is what was written since checkpoint {base}, which was not stored"
            )
        fill = partial(_fill_from, previous, checkpoint_id, subtask, written)
        return self._put(checkpoint_id, subtask, base, key_count, fill)

    def _put(
        self,
        checkpoint_id: CheckpointId,
        subtask: SubtaskIndex,
        base: CheckpointId,
        key_count: int,
        fill: Callable[[Path], list[StoredFile]],
    ) -> StateHandle:
        path = subtask_folder(checkpoint_id, subtask)
        target = self._root / path
        parent = target.parent
        unfinished = parent / layout.unfinished_folder(subtask, secrets.token_hex(8))
        if target.exists():
            raise ProtocolViolation(f"{target} is there already: a checkpoint id is given out once, and taken once")
        try:
            # Not the folder above: it is the coordinator's, and where it is missing, this machine has another disk.
            files.make_inner_folder(parent)
            files.disk.make_folder(unfinished)
            contents = Manifest.of(fill(unfinished), key_count)
            encoded = contents.encode()
            files.write_new(unfinished / MANIFEST, encoded)
            reached(CrashPoint.BEFORE_SEAL, checkpoint=checkpoint_id, subtask=subtask)
            files.publish_folder(unfinished, target)
        except OSError as error:
            for leftover in (unfinished, target):
                files.discard(leftover)
            why = str(error) if self._root.is_dir() else not_here(self._root)
            raise CheckpointDeclined(
                f"the snapshot of subtask {subtask} can't be stored in {target}: {why}; "
                "the job goes on, but no checkpoint completes until the checkpoint folder can be written to"
            ) from error
        except BaseException:
            files.discard(unfinished)
            raise
        self._previous[subtask] = _Stored(target, base, contents.files)
        return StateHandle(
            path=path,
            manifest_sha256=hashlib.sha256(encoded).hexdigest(),
            size_bytes=contents.size_bytes,
            key_count=key_count,
        )

    def fetch(self, state: StateHandle | InlineState, into: Path) -> None:
        """Bring a snapshot to the new folder `into`, verified; raise CheckpointCorrupted naming what is wrong."""
        match state:
            case StateHandle():
                self._fetch_stored(state, into)
            case InlineState():
                _write_whole(state, into)
            case _:
                assert_never(state)

    def _fetch_stored(self, handle: StateHandle, into: Path) -> None:
        checkpoint_id, subtask = layout.parse_snapshot_path(handle.path)
        folder = self._root / handle.path
        contents = _verified_manifest(self._root, handle)
        reached(CrashPoint.IN_RESTORE_AFTER_MANIFEST, checkpoint=checkpoint_id, subtask=subtask)
        try:
            _refuse_strangers(folder, contents)
            _fetch_files(handle, folder, into, contents)
        except OSError as error:
            raise _not_brought(str(folder), into, error) from error

    def _fill(
        self, checkpoint_id: CheckpointId, subtask: SubtaskIndex, local_folder: Path, unfinished: Path
    ) -> list[StoredFile]:
        known = self._digests.get(subtask, {})
        digests: dict[FileIdentity, str] = {}
        stored = []
        for source in sorted(local_folder.iterdir()):
            target = unfinished / source.name
            if source.suffix == _IMMUTABLE_SUFFIX:
                identity = FileIdentity.of(source)
                digest = known.get(identity) or self._unsynced.get(identity) or digest_of(source)
                self._place(source, target, subtask, identity, digest)
                digests[identity] = digest
                stored.append(StoredFile(source.name, identity.size_bytes, digest))
            else:
                stored.append(StoredFile(source.name, *copy_file(source, target)))
            reached(CrashPoint.IN_STORE, checkpoint=checkpoint_id, subtask=subtask)
        self._digests[subtask] = digests
        return stored

    def _place(self, source: Path, target: Path, subtask: SubtaskIndex, identity: FileIdentity, digest: str) -> None:
        """Have the immutable `source` at `target`: linked from itself, else from the snapshot before, else copied."""
        if identity not in self._unsynced and link_file(source, target):
            if identity not in self._digests.get(subtask, {}):
                self._seal(target, identity, digest)
            return
        previous = self._previous.get(subtask)
        same = previous is not None and previous.digest_of(source.name) == digest
        if previous is not None and same and link_file(previous.folder / source.name, target):
            return
        _, copied = copy_file(source, target)
        if copied != digest:
            raise OSError(f"{source} changed while it was stored, or the disk returned other bytes")

    def _seal(self, target: Path, identity: FileIdentity, digest: str) -> None:
        try:
            seal_file(target)
        except OSError:
            # What is read of it from now on may be less than was written: a copy must still have this digest.
            self._unsynced[identity] = digest
            raise


def _fill_from(
    previous: _Stored, checkpoint_id: CheckpointId, subtask: SubtaskIndex, written: bytes, unfinished: Path
) -> list[StoredFile]:
    """Link what the snapshot before has of the whole one that it stands on, and write the changes beside it."""
    base = [file for file in previous.files if file.name != changes.FILE_NAME]
    for file in base:
        source, target = previous.folder / file.name, unfinished / file.name
        if not link_file(source, target) and StoredFile(file.name, *copy_file(source, target)) != file:
            raise OSError(f"{source} is no longer what was stored, or the disk returned other bytes")
        reached(CrashPoint.IN_STORE, checkpoint=checkpoint_id, subtask=subtask)
    files.write_new(unfinished / changes.FILE_NAME, written)
    return [*base, StoredFile(changes.FILE_NAME, len(written), hashlib.sha256(written).hexdigest())]


def _write_whole(state: InlineState, into: Path) -> None:
    whole = changes.Changes.from_json(state.items, f"the metadata's part for {state.path}", is_whole=True)
    try:
        files.disk.make_folder(into)
        files.write_new(into / changes.WHOLE_FILE_NAME, whole.encode())
    except OSError as error:
        files.discard(into)
        raise _not_brought(state.path, into, error) from error


def _not_brought(snapshot: str, into: Path, error: OSError) -> Unavailable:
    return Unavailable(
        f"the snapshot {snapshot} can't be brought to {into}: {error}; "
        "is there room, and may this process read the one and write the other?"
    )


def _verified_manifest(root: Path, handle: StateHandle) -> Manifest:
    path = root / handle.path / MANIFEST
    try:
        data = read_fact(root, f"{handle.path}/{MANIFEST}", str(path))
    except FileNotFoundError as error:
        raise CheckpointCorrupted(f"{path} is missing, and with it the list of the snapshot's files") from error
    except OSError as error:
        raise Unavailable(f"{path} can't be read now: {error.strerror}") from error
    if hashlib.sha256(data).hexdigest() != handle.manifest_sha256:
        raise CheckpointCorrupted(f"{path} is not the manifest that the subtask acknowledged: its SHA-256 differs")
    return Manifest.decode(data, str(path))


def _refuse_strangers(folder: Path, contents: Manifest) -> None:
    found = {path.name for path in folder.iterdir()} - {MANIFEST}
    for name in sorted(found - contents.names):
        raise CheckpointCorrupted(f"{folder / name} is not listed in the manifest: it does not belong here")
    for name in sorted(contents.names - found):
        raise CheckpointCorrupted(f"{folder / name} is missing: the manifest lists it")


def _fetch_files(handle: StateHandle, folder: Path, into: Path, contents: Manifest) -> None:
    checkpoint_id, subtask = layout.parse_snapshot_path(handle.path)
    files.disk.make_folder(into)
    try:
        for file in contents.files:
            _fetch_file(folder / file.name, into / file.name, file)
            reached(CrashPoint.IN_RESTORE, checkpoint=checkpoint_id, subtask=subtask)
    except BaseException:
        files.discard(into)
        raise


def _fetch_file(source: Path, target: Path, expected: StoredFile) -> None:
    if source.is_symlink() or not source.is_file():
        raise CheckpointCorrupted(f"{source} is not a regular file, so it is not what was stored")
    size = source.stat().st_size
    if size != expected.size_bytes:
        raise CheckpointCorrupted(f"{source} is damaged: it has {size} bytes and should have {expected.size_bytes}")
    if source.suffix == _IMMUTABLE_SUFFIX and link_file(source, target):
        digest = digest_of(target)
    else:
        _, digest = copy_file(source, target)
    if digest != expected.sha256:
        raise CheckpointCorrupted(f"{source} is damaged: its SHA-256 does not match the manifest")
