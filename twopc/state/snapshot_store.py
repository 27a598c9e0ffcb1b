"""Snapshots in a checkpoint store: a manifest each, which names files that never change.

Invariants:

- A snapshot is there when its manifest is, which is created last, once, when all that it names is durable. A crash
  leaves files that no manifest names, and no snapshot.
- A file is stored once, under a name that nobody else uses, and named again by the manifests of later snapshots: SST
  files never change, so a snapshot stores what RocksDB has written since the one before, and names the rest.
- What is named again was in this subtask's snapshot before, which is that of the newest completed checkpoint or of a
  later one: the coordinator deletes nothing that one of these names (docs/decisions/0020).
- A failure loses the snapshot and declines the checkpoint.
- What is fetched is verified where it will be opened, before it is opened: names, sizes and digests. A state that
  stands in the metadata was verified with that.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from twopc.errors import CheckpointCorrupted, CheckpointDeclined, ProtocolViolation, Unavailable
from twopc.faults.points import CrashPoint, reached
from twopc.protocol.facts import StateHandle
from twopc.protocol.ids import CheckpointId, SubtaskIndex
from twopc.protocol.layout import manifest_of, manifest_path, stored_file, subtask_folder
from twopc.protocol.manifest import Manifest, StoredFile
from twopc.state import changes, layout
from twopc.state.shared_folder import not_here
from twopc.storage import files
from twopc.storage.local_files import FileIdentity, digest_of
from twopc.storage.store import CheckpointStore, Content
from twopc.storage.transfers import side_by_side

_IMMUTABLE_SUFFIX = ".sst"


@dataclass(frozen=True, slots=True)
class _Put:
    """A snapshot that this process put, whose files the next may name; `base` is the whole one that it stands on."""

    base: CheckpointId
    files: tuple[StoredFile, ...]

    def find(self, name: str) -> StoredFile | None:
        return next((file for file in self.files if file.name == name), None)


class SnapshotStore:
    """Snapshots of one job, in its part of a store, which is never established here. Used by one thread at a time."""

    def __init__(self, store: CheckpointStore) -> None:
        self._store = store
        self._known: dict[SubtaskIndex, dict[FileIdentity, StoredFile]] = {}
        self._previous: dict[SubtaskIndex, _Put] = {}

    def put(
        self, checkpoint_id: CheckpointId, subtask: SubtaskIndex, local_folder: Path, key_count: int
    ) -> StateHandle:
        """Store the files of `local_folder`, incrementally; raise CheckpointDeclined if the store refuses."""
        try:
            kept, new, known = self._sorted(subtask, local_folder)
        except OSError as error:
            raise self._declined(checkpoint_id, subtask, error) from error
        contents = [(source.name, _content(source)) for source in new]
        handle, stored = self._put(checkpoint_id, subtask, checkpoint_id, key_count, kept, contents)
        by_name = {file.name: file for file in stored}
        known |= {FileIdentity.of(each): by_name[each.name] for each in new if each.suffix == _IMMUTABLE_SUFFIX}
        self._known[subtask] = known
        return handle

    def put_changes(
        self, checkpoint_id: CheckpointId, subtask: SubtaskIndex, base: CheckpointId, written: bytes, key_count: int
    ) -> StateHandle:
        """Store what `base`, a snapshot that was put whole, has, and what was written since.

        Raises CheckpointDeclined if the store refuses, or the snapshot that was put last doesn't stand on `base`.
        """
        previous = self._previous.get(subtask)
        if previous is None or previous.base != base:
            raise CheckpointDeclined(
                f"the snapshot of subtask {subtask} is what was written since checkpoint {base}, which was not stored"
            )
        kept = [file for file in previous.files if file.name != changes.FILE_NAME]
        handle, _ = self._put(checkpoint_id, subtask, base, key_count, kept, [(changes.FILE_NAME, written)])
        return handle

    def _put(
        self,
        checkpoint_id: CheckpointId,
        subtask: SubtaskIndex,
        base: CheckpointId,
        key_count: int,
        kept: list[StoredFile],
        new: Iterable[tuple[str, Content]],
    ) -> tuple[StateHandle, list[StoredFile]]:
        """Store what is new, and a manifest that names it and what is kept; return what was stored too."""
        token, name = self._store.creator(), manifest_path(checkpoint_id, subtask)
        written: list[str] = []

        def one_by_one() -> Iterator[tuple[str, Content]]:
            for each, content in new:
                written.append(stored_file(checkpoint_id, subtask, token, each))
                yield written[-1], content
                reached(CrashPoint.IN_STORE, checkpoint=checkpoint_id, subtask=subtask)

        if self._store.names(name):
            raise self._taken(name)
        try:
            stored = [StoredFile(item.name, item.size_bytes, item.sha256) for item in self._store.put(one_by_one())]
            contents = Manifest.of([*kept, *stored], key_count)
            encoded = contents.encode()
            reached(CrashPoint.BEFORE_SEAL, checkpoint=checkpoint_id, subtask=subtask)
            self._store.create_once(name, encoded)
        except FileExistsError as error:
            raise self._taken(name) from error
        except OSError as error:
            with suppress(OSError):
                self._store.delete([name])
                self._store.delete_unordered(written)
            raise self._declined(checkpoint_id, subtask, error) from error
        self._previous[subtask] = _Put(base, contents.files)
        digest = hashlib.sha256(encoded).hexdigest()
        return StateHandle(subtask_folder(checkpoint_id, subtask), digest, contents.size_bytes, key_count), stored

    def _sorted(
        self, subtask: SubtaskIndex, local_folder: Path
    ) -> tuple[list[StoredFile], list[Path], dict[FileIdentity, StoredFile]]:
        """Return what is stored already, what is new, and the identities of the former."""
        kept: list[StoredFile] = []
        new: list[Path] = []
        known: dict[FileIdentity, StoredFile] = {}
        for source in sorted(local_folder.iterdir()):
            file = self._stored_already(subtask, source) if source.suffix == _IMMUTABLE_SUFFIX else None
            if file is None:
                new.append(source)
            else:
                kept.append(file)
                known[FileIdentity.of(source)] = file
        return kept, new, known

    def _stored_already(self, subtask: SubtaskIndex, source: Path) -> StoredFile | None:
        known = self._known.get(subtask, {}).get(FileIdentity.of(source))
        if known is not None:
            return known
        # Where RocksDB can't link its files into a snapshot, each is another file with the same bytes.
        previous = self._previous.get(subtask)
        file = None if previous is None else previous.find(source.name)
        return file if file is not None and digest_of(source) == file.sha256 else None

    def _taken(self, name: str) -> ProtocolViolation:
        return ProtocolViolation(
            f"{self._store.place(name)} is there already: a checkpoint id is given out once, and taken once"
        )

    def _declined(self, checkpoint_id: CheckpointId, subtask: SubtaskIndex, error: OSError) -> CheckpointDeclined:
        why = str(error) if self._store.parts() else not_here(self._store.place())
        return CheckpointDeclined(
            f"the snapshot of subtask {subtask} can't be stored in "
            f"{self._store.place(subtask_folder(checkpoint_id, subtask))}: {why}; "
            "the job goes on, but no checkpoint completes until the checkpoint folder can be written to"
        )

    def fetch(self, handle: StateHandle, into: Path) -> None:
        """Bring a snapshot to the new folder `into`, verified; raise CheckpointCorrupted naming what is wrong."""
        checkpoint_id, subtask = layout.parse_snapshot_path(handle.path)
        if handle.items is not None:
            _write_whole(handle.path, handle.items, into)
            return
        contents = self._verified_manifest(handle)
        reached(CrashPoint.IN_RESTORE_AFTER_MANIFEST, checkpoint=checkpoint_id, subtask=subtask)
        try:
            files.disk.make_folder(into)
            try:
                for _ in side_by_side(partial(self._fetch_file, into), contents.files, self._store.at_once):
                    reached(CrashPoint.IN_RESTORE, checkpoint=checkpoint_id, subtask=subtask)
            except BaseException:
                files.discard(into)
                raise
        except OSError as error:
            raise _not_brought(self._store.place(handle.path), into, error) from error

    def _verified_manifest(self, handle: StateHandle) -> Manifest:
        name = manifest_of(handle.path)
        place = self._store.place(name)
        try:
            data = self._store.get(name)
        except FileNotFoundError as error:
            raise CheckpointCorrupted(f"{place} is missing, and with it the list of the snapshot's files") from error
        except OSError as error:
            raise Unavailable(f"{place} can't be read now: {error.strerror}") from error
        return Manifest.acknowledged(data, handle, place)

    def _fetch_file(self, into: Path, file: StoredFile) -> None:
        target = into / file.name
        place = self._store.place(file.stored)
        try:
            with self._store.open(file.stored) as reading:
                if reading.size_bytes != file.size_bytes:
                    raise CheckpointCorrupted(
                        f"{place} is damaged: it has {reading.size_bytes} bytes and should have {file.size_bytes}"
                    )
                if not file.name.endswith(_IMMUTABLE_SUFFIX):
                    # RocksDB writes to its own.
                    _, digest = files.write_chunks(target, reading.chunks)
                else:
                    self._store.bring(file.stored, target)
                    digest = digest_of(target)
        except FileNotFoundError as error:
            raise CheckpointCorrupted(f"{place} is missing: the manifest lists it") from error
        if digest != file.sha256:
            raise CheckpointCorrupted(f"{place} is damaged: its SHA-256 does not match the manifest")


def _content(source: Path) -> Content:
    return source if source.suffix == _IMMUTABLE_SUFFIX else source.read_bytes()


def _write_whole(snapshot: str, items: Mapping[str, Any], into: Path) -> None:
    whole = changes.Changes.of_json(items, f"the metadata's part for {snapshot}", is_whole=True)
    try:
        files.disk.make_folder(into)
        files.write_new(into / changes.WHOLE_FILE_NAME, whole.encode())
    except OSError as error:
        files.discard(into)
        raise _not_brought(snapshot, into, error) from error


def _not_brought(snapshot: str, into: Path, error: OSError) -> Unavailable:
    return Unavailable(
        f"the snapshot {snapshot} can't be brought to {into}: {error}; "
        "is there room, and may this process read the one and write the other?"
    )
