"""The snapshots of subtasks: in the checkpoint folder, and before that on a disk of local work, in memory."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any, cast

from tests.simulation.disk import CheckpointFolder
from tests.simulation.world import World
from twopc.errors import CheckpointCorrupted, CheckpointDeclined, ProtocolViolation
from twopc.faults.points import CrashPoint, reached
from twopc.protocol.facts import StateHandle
from twopc.protocol.ids import CheckpointId, SubtaskIndex
from twopc.protocol.layout import manifest_of, manifest_path, stored_file, subtask_folder
from twopc.protocol.manifest import Manifest, StoredFile
from twopc.state.changes import WHOLE_FILE_NAME, Changes

STATE_FILE = "state.json"
"""What the state in memory calls its only file."""

SHARED_FILE, SHARED = "000001.sst", b"what never changes"
"""What a subtask's first snapshot stores, and all of its later ones name."""

_WHILE_STORING = (CrashPoint.IN_STORE, CrashPoint.BEFORE_SEAL)


class LocalPath:
    """As `pathlib.Path`, on one process's disk of local work: what the state of a subtask asks of a path."""

    __slots__ = ("_files", "_name")

    def __init__(self, files: dict[str, bytes], name: str) -> None:
        self._files = files
        self._name = name

    def __truediv__(self, name: str) -> LocalPath:
        return LocalPath(self._files, f"{self._name}/{name}")

    def __str__(self) -> str:
        return self._name

    @property
    def parent(self) -> LocalPath:
        return LocalPath(self._files, self._name.rpartition("/")[0])

    def mkdir(self, mode: int = 0o777, parents: bool = False, exist_ok: bool = False) -> None:
        """Folders need no making here."""

    def write_bytes(self, data: bytes) -> int:
        self._files[self._name] = data
        return len(data)

    def read_bytes(self) -> bytes:
        if self._name not in self._files:
            raise FileNotFoundError(self._name)
        return self._files[self._name]

    def remove_tree(self) -> None:
        for name in [name for name in self._files if name.startswith(f"{self._name}/")]:
            del self._files[name]


def local_disk() -> Path:
    """The root of one process's local work, gone with it; its paths exist nowhere else."""
    root: Any = LocalPath({}, "/nowhere-simulated")
    return cast(Path, root)


class SimSnapshots:
    """As `twopc.state.snapshot_store.SnapshotStore`, in its order; a state is one file here."""

    def __init__(self, world: World, folder: CheckpointFolder) -> None:
        self._world = world
        self._folder = folder
        self.is_blamed = folder.is_blamed
        self._shared: dict[str, StoredFile] = {}

    def put(
        self, checkpoint_id: CheckpointId, subtask: SubtaskIndex, local_folder: Path, key_count: int
    ) -> StateHandle:
        if self._folder.names(manifest_path(checkpoint_id, subtask)):
            raise ProtocolViolation("a checkpoint id is given out once, and taken once")
        if self._world.strikes("snapshot refused", self._world.faults.snapshot_refused):
            raise CheckpointDeclined("simulated: the checkpoint folder is full")
        data = (local_folder / STATE_FILE).read_bytes()
        stored = stored_file(checkpoint_id, subtask, self._folder.creator(), STATE_FILE)
        own = StoredFile(stored, len(data), hashlib.sha256(data).hexdigest())
        process = self._process()
        shared = self._shared.get(process)
        new = [(stored, data)]
        if shared is None:
            name = stored_file(checkpoint_id, subtask, self._folder.creator(), SHARED_FILE)
            shared = StoredFile(name, len(SHARED), hashlib.sha256(SHARED).hexdigest())
            new.append((name, SHARED))
        manifest = Manifest.of([own, shared], key_count).encode()
        digest = hashlib.sha256(manifest).hexdigest()
        handle = StateHandle(subtask_folder(checkpoint_id, subtask), digest, len(data), key_count)
        if self._world.strikes("stored elsewhere", self._world.faults.stored_elsewhere):
            self._world.coverage["stored elsewhere"] += 1
            return handle
        try:
            self._folder.put(new)
            for point in _WHILE_STORING:
                reached(point, checkpoint=checkpoint_id, subtask=subtask)
            self._folder.create_once(manifest_path(checkpoint_id, subtask), manifest)
        except OSError as error:
            raise CheckpointDeclined(f"simulated: {error}") from error
        self._shared[process] = shared
        return handle

    def _process(self) -> str:
        lane = self._world.lane
        return "" if lane is None or lane.process is None else lane.process.name

    def put_changes(
        self, checkpoint_id: CheckpointId, subtask: SubtaskIndex, base: CheckpointId, written: bytes, key_count: int
    ) -> StateHandle:
        raise ProtocolViolation("the state in memory gives no account of its changes")

    def fetch(self, handle: StateHandle, into: Path) -> None:
        if handle.items is not None:
            self._world.coverage["state restored from the metadata"] += 1
            whole = Changes.of_json(handle.items, handle.path, is_whole=True)
            (into / WHOLE_FILE_NAME).write_bytes(whole.encode())
            return
        manifest = self._read(manifest_of(handle.path), handle.manifest_sha256)
        reached(CrashPoint.IN_RESTORE_AFTER_MANIFEST)
        found = {
            file.name: self._read(file.stored, file.sha256) for file in Manifest.decode(manifest, handle.path).files
        }
        data = found[STATE_FILE]
        (into / STATE_FILE).write_bytes(data)
        reached(CrashPoint.IN_RESTORE)

    def _read(self, name: str, sha256: str) -> bytes:
        try:
            data = self._folder.get(name)
        except FileNotFoundError:
            raise CheckpointCorrupted(f"{name} is missing") from None
        if hashlib.sha256(data).hexdigest() != sha256:
            raise CheckpointCorrupted(f"{name} is damaged")
        return data
