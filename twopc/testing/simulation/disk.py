"""The disks: of the checkpoint folder, which outlives every process, and of local work, in memory. Both may refuse."""

from __future__ import annotations

import errno
import hashlib
from pathlib import Path
from typing import Any, cast

from coordinator.storage import MemoryStorage
from twopc.errors import CheckpointCorrupted, CheckpointDeclined, ProtocolViolation
from twopc.protocol.checkpoints import CheckpointKind
from twopc.protocol.facts import StateHandle
from twopc.protocol.ids import CheckpointId, SubtaskIndex
from twopc.protocol.layout import LEDGER, metadata_path, subtask_folder
from twopc.protocol.ledger_facts import CheckpointCompleted, CommittablesConfirmed
from twopc.protocol.ledger_state import decode_entry
from twopc.testing.simulation.world import World

STATE_FILE = "state.json"
_IN_LEDGER = f"{LEDGER}/"
_FOLLOWED = tuple(f'"kind":"{each.KIND}"'.encode() for each in (CheckpointCompleted, CommittablesConfirmed))


class CheckpointFolder(MemoryStorage):
    """One job's checkpoint folder; notes what became durable, and when."""

    def __init__(self, world: World) -> None:
        super().__init__()
        self.world = world
        self.completed_names: set[str] = set()
        self.savepoints: set[CheckpointId] = set()
        self._outstanding: dict[CheckpointId, set[str]] = {}
        self._ledger: dict[str, None] = {}

    def create_once(self, name: str, data: bytes) -> None:
        if self.world.strikes("disk full", self.world.faults.disk_full):
            self.world.note("disk", "FULL", name)
            raise OSError(errno.ENOSPC, "No space left on device")
        super().create_once(name, data)
        if name.startswith(_IN_LEDGER):
            self._ledger_entry(name, data)

    def list(self, folder: str) -> list[str]:
        return list(self._ledger) if folder == LEDGER else super().list(folder)

    def delete(self, name: str) -> None:
        super().delete(name)
        self._ledger.pop(name.removeprefix(_IN_LEDGER), None)

    def _ledger_entry(self, name: str, data: bytes) -> None:
        self._ledger[name.removeprefix(_IN_LEDGER)] = None
        if not any(kind in data for kind in _FOLLOWED):
            return
        _, entry = decode_entry(data, name)
        match entry:
            case CheckpointCompleted(checkpoint_id=checkpoint_id, committables=committables):
                self.world.note("disk", "COMPLETION RECORD", checkpoint_id)
                names = {name for each in committables for name in each}
                self.completed_names |= names
                self._outstanding[checkpoint_id] = names
                if entry.kind is CheckpointKind.SAVEPOINT:
                    self.savepoints.add(checkpoint_id)
            case CommittablesConfirmed():
                for outstanding in self._outstanding.values():
                    outstanding.difference_update(entry.names)
            case _:
                pass

    def missing(self) -> tuple[CheckpointId, ...]:
        """Completed checkpoints that may be needed, and are gone.

        Needed are savepoints, and the newest checkpoint with nothing outstanding, with all after it: a subtask whose
        transaction was lost replays from one of these.
        """
        confirmed = max((each for each, outstanding in self._outstanding.items() if not outstanding), default=0)
        needed = self.savepoints.union(each for each in self._outstanding if each >= confirmed)
        return tuple(each for each in sorted(needed) if metadata_path(each) not in self.files)


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
        return self._files[self._name]

    def remove(self) -> None:
        for name in [name for name in self._files if name.startswith(f"{self._name}/")]:
            del self._files[name]


class SimShutil:
    """As the module `shutil`, for who removes folders of local work."""

    @staticmethod
    def rmtree(path: LocalPath, *, ignore_errors: bool) -> None:
        path.remove()


def local_disk() -> Path:
    """The root of one process's local work, gone with it; its paths exist nowhere else."""
    root: Any = LocalPath({}, "/nowhere-simulated")
    return cast(Path, root)


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
        if self._world.strikes("snapshot refused", self._world.faults.snapshot_refused):
            raise CheckpointDeclined("simulated: the checkpoint folder is full")
        data = (local_folder / STATE_FILE).read_bytes()
        self._folder.files[name] = data
        return StateHandle(path, hashlib.sha256(data).hexdigest(), len(data), key_count)

    def fetch(self, handle: StateHandle, into: Path) -> None:
        data = self._folder.files.get(f"{handle.path}/{STATE_FILE}")
        if data is None or hashlib.sha256(data).hexdigest() != handle.manifest_sha256:
            raise CheckpointCorrupted(f"{handle.path} is {'missing' if data is None else 'damaged'}")
        (into / STATE_FILE).write_bytes(data)
