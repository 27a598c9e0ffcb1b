"""A subtask's state with its storage, as the runtime uses them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from twopc.protocol.facts import StateHandle
from twopc.protocol.ids import CheckpointId, SubtaskIndex
from twopc.state.backend import Family, StateBackend
from twopc.state.rocksdb import RocksDBBackend
from twopc.state.snapshot_store import SnapshotStore

SUBTASK = SubtaskIndex(0)


@dataclass
class Subtask:
    """Its snapshots are taken into `local` and stored under `root`."""

    backend: RocksDBBackend
    storage: SnapshotStore
    root: Path
    local: Path

    def checkpoint(self, number: int) -> StateHandle:
        """Take a snapshot and store it."""
        folder = self.local / f"snapshot-{number}"
        self.backend.snapshot(folder)
        return self.storage.put(CheckpointId(number), SUBTASK, folder, self.backend.key_count())


def everything(backend: StateBackend) -> list[list[tuple[bytes, bytes]]]:
    """All items of a state, by family."""
    return [list(backend.scan(family)) for family in Family]
