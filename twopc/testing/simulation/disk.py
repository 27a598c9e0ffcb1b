"""The disks: of the checkpoint folder, which outlives every process, and of local work, in memory. Both may refuse."""

from __future__ import annotations

import errno
import hashlib
from pathlib import Path, PurePosixPath
from typing import Any, ClassVar, cast

from coordinator.storage import MemoryStorage
from twopc.errors import CheckpointCorrupted, CheckpointDeclined, ProtocolViolation
from twopc.protocol.facts import StateHandle
from twopc.protocol.ids import CheckpointId, SubtaskIndex
from twopc.protocol.layout import subtask_folder
from twopc.protocol.ledger_facts import CheckpointCompleted
from twopc.protocol.ledger_state import decode_entry
from twopc.testing.simulation.world import World

STATE_FILE = "state.json"


class CheckpointFolder(MemoryStorage):
    """One job's checkpoint folder; notes what became durable, and when."""

    def __init__(self, world: World) -> None:
        super().__init__()
        self.world = world
        self.completed_names: set[str] = set()

    def create_once(self, name: str, data: bytes) -> None:
        if self.world.happens(self.world.faults.disk_full):
            self.world.note("disk", "FULL", name)
            raise OSError(errno.ENOSPC, "No space left on device")
        super().create_once(name, data)
        if name.startswith("ledger/"):
            self._ledger_entry(name, data)

    def _ledger_entry(self, name: str, data: bytes) -> None:
        match decode_entry(data, name):
            case CheckpointCompleted(checkpoint_id=checkpoint_id, committables=committables):
                self.world.note("disk", "COMPLETION RECORD", checkpoint_id)
                self.completed_names.update(name for names in committables for name in names)
            case _:
                pass


class _Local(PurePosixPath):
    """A path on a disk of local work, with the file operations that a memory backend uses."""

    files: ClassVar[dict[str, bytes]]

    def mkdir(self, mode: int = 0o777, parents: bool = False, exist_ok: bool = False) -> None:
        """Folders need no making here."""

    def write_bytes(self, data: bytes) -> int:
        self.files[str(self)] = data
        return len(data)

    def read_bytes(self) -> bytes:
        return self.files[str(self)]


class LocalDisk:
    """One process's local work, gone with it. Its paths exist nowhere else."""

    def __init__(self) -> None:
        self._kind: Any = type("LocalPath", (_Local,), {"files": {}})

    def folder(self, name: str) -> Path:
        return cast(Path, self._kind("/nowhere-simulated", name))


class SimSnapshots:
    """As `twopc.state.storage.CheckpointStorage`: puts and fetches snapshots, checked by their digest."""

    def __init__(self, world: World, folder: CheckpointFolder) -> None:
        self._world = world
        self._folder = folder

    def put(
        self, checkpoint_id: CheckpointId, subtask: SubtaskIndex, local_folder: Path, key_count: int
    ) -> StateHandle:
        path = subtask_folder(checkpoint_id, subtask)
        name = f"{path}/{STATE_FILE}"
        if name in self._folder.files:
            raise ProtocolViolation(f"{path} is there already: a checkpoint id is given out once, and taken once")
        if self._world.happens(self._world.faults.snapshot_refused):
            raise CheckpointDeclined("simulated: the checkpoint folder is full")
        data = (local_folder / STATE_FILE).read_bytes()
        self._folder.files[name] = data
        return StateHandle(path, hashlib.sha256(data).hexdigest(), len(data), key_count)

    def fetch(self, handle: StateHandle, into: Path) -> None:
        data = self._folder.files.get(f"{handle.path}/{STATE_FILE}")
        if data is None or hashlib.sha256(data).hexdigest() != handle.manifest_sha256:
            raise CheckpointCorrupted(f"{handle.path} is {'missing' if data is None else 'damaged'}")
        (into / STATE_FILE).write_bytes(data)
