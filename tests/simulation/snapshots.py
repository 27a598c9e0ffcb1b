"""What subtasks store: in the checkpoint folder, and before that on a disk of local work, in memory."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, assert_never, cast

from tests.simulation.disk import CheckpointFolder
from tests.simulation.filesystem import File, Folder, SimPath
from tests.simulation.world import World
from twopc.errors import CheckpointCorrupted, CheckpointDeclined, ProtocolViolation
from twopc.faults.points import CrashPoint, reached
from twopc.protocol.facts import InlineState, StateHandle
from twopc.protocol.ids import CheckpointId, SubtaskIndex
from twopc.protocol.layout import MANIFEST, subtask_folder
from twopc.state.changes import WHOLE_FILE_NAME, Changes
from twopc.storage import files

STATE_FILE = "state.json"
"""What the state in memory calls its only file."""

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
    """As `twopc.state.storage.CheckpointStorage`, in its order: manifest and all that it lists are one file here."""

    def __init__(self, world: World, folder: CheckpointFolder) -> None:
        self._world = world
        self._folder = folder
        self.is_blamed = folder.is_blamed

    def put(
        self, checkpoint_id: CheckpointId, subtask: SubtaskIndex, local_folder: Path, key_count: int
    ) -> StateHandle:
        path = subtask_folder(checkpoint_id, subtask)
        target = self._folder.top / path
        if target.exists():
            raise ProtocolViolation(f"{path} is there already: a checkpoint id is given out once, and taken once")
        if self._world.strikes("snapshot refused", self._world.faults.snapshot_refused):
            raise CheckpointDeclined("simulated: the checkpoint folder is full")
        data = (local_folder / STATE_FILE).read_bytes()
        handle = StateHandle(path, hashlib.sha256(data).hexdigest(), len(data), key_count)
        if self._world.strikes("stored elsewhere", self._world.faults.stored_elsewhere):
            self._world.coverage["stored elsewhere"] += 1
            return handle
        store = self._store_at_once if self._world.calm else self._store_in_steps
        try:
            store(target, data, lambda point: reached(point, checkpoint=checkpoint_id, subtask=subtask))
        except OSError as error:
            raise CheckpointDeclined(f"simulated: {error}") from error
        return handle

    def _store_in_steps(self, target: SimPath, data: bytes, come_to: Callable[[CrashPoint], None]) -> None:
        unfinished = target.with_name(f".unfinished-{target.name}")
        try:
            files.make_folder(_real(target.parent))
            files.disk.make_folder(_real(unfinished))
            files.write_new(_real(unfinished / MANIFEST), data)
            for point in _WHILE_STORING:
                come_to(point)
            files.publish_folder(_real(unfinished), _real(target))
        except OSError:
            unfinished.remove_tree()
            target.remove_tree()
            raise

    def _store_at_once(self, target: SimPath, data: bytes, come_to: Callable[[CrashPoint], None]) -> None:
        """In the calm phase no step of it can fail, or be the last, but for the places that faults are aimed at."""
        if target.parent.node is None:
            target.parent.add(Folder())
        for point in _WHILE_STORING:
            come_to(point)
        target.add(Folder())
        (target / MANIFEST).add(File(data, data))

    def put_changes(
        self, checkpoint_id: CheckpointId, subtask: SubtaskIndex, base: CheckpointId, written: bytes, key_count: int
    ) -> StateHandle:
        raise ProtocolViolation("the state in memory gives no account of its changes")

    def fetch(self, state: StateHandle | InlineState, into: Path) -> None:
        match state:
            case StateHandle():
                self._fetch_stored(state, into)
            case InlineState():
                self._world.coverage["state restored from the metadata"] += 1
                whole = Changes.from_json(state.items, state.path, is_whole=True)
                (into / WHOLE_FILE_NAME).write_bytes(whole.encode())
            case _:
                assert_never(state)

    def _fetch_stored(self, handle: StateHandle, into: Path) -> None:
        try:
            data = (self._folder.top / handle.path / MANIFEST).read_bytes()
        except FileNotFoundError:
            raise CheckpointCorrupted(f"{handle.path} is missing") from None
        if hashlib.sha256(data).hexdigest() != handle.manifest_sha256:
            raise CheckpointCorrupted(f"{handle.path} is damaged")
        reached(CrashPoint.IN_RESTORE_AFTER_MANIFEST)
        (into / STATE_FILE).write_bytes(data)
        reached(CrashPoint.IN_RESTORE)


def _real(path: SimPath) -> Path:
    return cast(Path, path)
