"""The disks: of the checkpoint folder, which outlives every process, and of local work, in memory."""

from __future__ import annotations

import errno
import hashlib
import re
from pathlib import Path
from typing import Any, cast

from coordinator.storage import FolderStorage
from twopc import files
from twopc.crashpoints import CrashPoint, reached
from twopc.errors import CheckpointCorrupted, CheckpointDeclined, ProtocolViolation
from twopc.protocol.facts import StateHandle
from twopc.protocol.ids import NO_CHECKPOINT, CheckpointId, SubtaskIndex
from twopc.protocol.layout import LEDGER, TWINS, metadata_path, subtask_folder
from twopc.protocol.ledger_facts import CheckpointCompleted, CheckpointsDisposed, CommittablesConfirmed, LossSettled
from twopc.protocol.ledger_state import decode_entry
from twopc.testing.simulation.filesystem import Folder, SimFileSystem, SimPath
from twopc.testing.simulation.process import Crashed
from twopc.testing.simulation.world import World

STATE_FILE = "state.json"
ENOUGH_FOR_THE_KIND = 200
_IN_LEDGER = f"{LEDGER}/"
_FOLLOWED = (CheckpointCompleted, CommittablesConfirmed, LossSettled, CheckpointsDisposed)
_KIND = re.compile(f'"kind":"(?:{"|".join(each.KIND for each in _FOLLOWED)})"'.encode())


class CheckpointFolder(FolderStorage):
    """One job's checkpoint folder, as production writes it; notes which completion records were ever there.

    `rotten` is the file that a bit was flipped in, if that has happened.
    """

    def __init__(self, world: World) -> None:
        self.world = world
        self.completed_names: set[str] = set()
        self.savepoints: set[CheckpointId] = set()
        self._outstanding: dict[CheckpointId, set[str]] = {}
        self._bases: dict[CheckpointId, set[CheckpointId]] = {}
        self._doubtful = NO_CHECKPOINT
        self.rotten = ""
        faults = world.faults
        self._may_refuse = bool(faults.crash_at_write or faults.fsync_fails or faults.disk_full)
        self._disk = SimFileSystem(self._refuses, self._named)
        self.top = self._disk.root
        root: Any = self.top
        super().__init__(root)

    def list(self, folder: str) -> list[str]:
        node = (self.top / folder).node
        return [name for name in node.names if name[0] != "."] if isinstance(node, Folder) else []

    def read(self, name: str) -> bytes:
        return (self.top / name).file().data

    def opened(self) -> None:
        """Another process opens it: one that knows nothing of what was made durable before."""
        self._durable.clear()

    def lose_power(self, strike: int) -> None:
        self.world.note("disk", "LOSES POWER")
        self.world.coverage["power failed"] += 1
        self._disk.lose_power(strike)
        self._outstanding.pop(self._doubtful, None)
        self.savepoints.discard(self._doubtful)

    def rot(self, strike: int) -> None:
        self.rotten = self.rotten or self._disk.flip_a_bit(strike).replace(f"{TWINS}/", _IN_LEDGER)
        if self.rotten:
            self.world.note("disk", "ROTS", self.rotten)
            self.world.coverage["bit rot"] += 1

    def is_blamed(self, message: str) -> bool:
        """Whether this is a refusal of the rotten file, by name."""
        return bool(self.rotten) and self.rotten.removesuffix(f"/{STATE_FILE}") in message

    def _refuses(self, what: str, path: str) -> None:
        """Let a write fail, or the process end at it; one that is dead already does nothing any more."""
        world = self.world
        process = world.lane.process if world.lane is not None else None
        if process is not None and not process.alive:
            raise Crashed
        if what == "remove" or world.calm or not self._may_refuse:
            return
        path = path.partition("/.")[0]  # temporary names are made by chance, and no trace may depend on that
        if process is not None and world.strikes("crash at a write", world.faults.crash_at_write):
            world.coverage["crash at a write"] += 1
            world.kill(process, f"at the {what} of {path}")
            raise Crashed
        if what == "sync":
            if world.strikes("fsync fails", world.faults.fsync_fails):
                world.note("disk", "FSYNC FAILS", path)
                raise OSError(errno.EIO, "Input/output error")
        elif world.strikes("disk full", world.faults.disk_full):
            world.note("disk", "FULL", path)
            raise OSError(errno.ENOSPC, "No space left on device")

    def create_once(self, name: str, data: bytes) -> None:
        try:
            super().create_once(name, data)
        except OSError:
            if self._disk.find(name) is None:
                self._outstanding.pop(self._doubtful, None)
                self.savepoints.discard(self._doubtful)
            raise
        self._doubtful = NO_CHECKPOINT

    def _named(self, path: str, data: bytes) -> None:
        """A file is there for all to see: who reads an entry of the ledger acts on it, durable or not."""
        if not path.startswith(_IN_LEDGER) or "/." in path:
            return
        if _KIND.search(data, len(data) - ENOUGH_FOR_THE_KIND) is None:
            return
        _, entry = decode_entry(data, path)
        match entry:
            case CheckpointCompleted(checkpoint_id=checkpoint_id) as record:
                self.world.note("disk", "COMPLETION RECORD", checkpoint_id)
                names = {name for each in record.committables for name in each}
                self.completed_names |= names
                self._outstanding[checkpoint_id] = names
                self._doubtful = checkpoint_id
                if record.kind.is_savepoint:
                    self.savepoints.add(checkpoint_id)
            case CommittablesConfirmed(names=confirmed):
                for outstanding in self._outstanding.values():
                    outstanding.difference_update(confirmed)
            case LossSettled():
                self._outstanding.get(entry.checkpoint_id, set()).difference_update(entry.names)
                bases = self._bases.setdefault(entry.checkpoint_id, set())
                bases.update(base for _, base in entry.bases if base)
            case CheckpointsDisposed():
                self.savepoints.difference_update(entry.forgotten)
            case _:
                pass

    @property
    def newest(self) -> CheckpointId:
        """The newest checkpoint that was ever completed."""
        return max(self._outstanding)

    def missing(self) -> tuple[CheckpointId, ...]:
        """Completed checkpoints that may be needed, and are gone.

        Needed are savepoints, and the newest checkpoint with nothing outstanding, with all after it: a subtask whose
        transaction was lost replays from one of these; and those that its healed subtasks are restored from.
        """
        confirmed = max((each for each, outstanding in self._outstanding.items() if not outstanding), default=0)
        needed = self.savepoints.union(each for each in self._outstanding if each >= confirmed)
        needed = needed.union(*(self._bases.get(each, set()) for each in needed))
        return tuple(each for each in sorted(needed) if self._disk.find(metadata_path(each)) is None)


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

    def remove_tree(self) -> None:
        for name in [name for name in self._files if name.startswith(f"{self._name}/")]:
            del self._files[name]


def local_disk() -> Path:
    """The root of one process's local work, gone with it; its paths exist nowhere else."""
    root: Any = LocalPath({}, "/nowhere-simulated")
    return cast(Path, root)


class SimSnapshots:
    """As `twopc.state.storage.CheckpointStorage`, in its order: what a snapshot holds is one file here."""

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
        unfinished = target.with_name(f".unfinished-{subtask}")
        try:
            files.make_folder(_real(target.parent))
            files.disk.make_folder(_real(unfinished))
            files.write_new(_real(unfinished / STATE_FILE), data)
            reached(CrashPoint.IN_STORE, checkpoint=checkpoint_id, subtask=subtask)
            reached(CrashPoint.BEFORE_SEAL, checkpoint=checkpoint_id, subtask=subtask)
            files.publish_folder(_real(unfinished), _real(target))
        except OSError as error:
            unfinished.remove_tree()
            target.remove_tree()
            raise CheckpointDeclined(f"simulated: {error}") from error
        return StateHandle(path, hashlib.sha256(data).hexdigest(), len(data), key_count)

    def put_changes(
        self, checkpoint_id: CheckpointId, subtask: SubtaskIndex, base: CheckpointId, written: bytes, key_count: int
    ) -> StateHandle:
        raise ProtocolViolation("the state in memory gives no account of its changes")

    def fetch(self, handle: StateHandle, into: Path) -> None:
        try:
            data = (self._folder.top / handle.path / STATE_FILE).read_bytes()
        except FileNotFoundError:
            raise CheckpointCorrupted(f"{handle.path} is missing") from None
        if hashlib.sha256(data).hexdigest() != handle.manifest_sha256:
            raise CheckpointCorrupted(f"{handle.path} is damaged")
        reached(CrashPoint.IN_RESTORE_AFTER_MANIFEST)
        (into / STATE_FILE).write_bytes(data)
        reached(CrashPoint.IN_RESTORE)


def _real(path: SimPath) -> Path:
    return cast(Path, path)
