"""What a subtask keeps and stores: its backend and the checkpoint storage, as the loop sees them."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from twopc.errors import CheckpointDeclined
from twopc.protocol.facts import PartitionPosition, StateHandle
from twopc.protocol.ids import CheckpointId, SubtaskIndex
from twopc.state.backend import StateBackend
from twopc.state.positions import write_positions


class SnapshotStorage(Protocol):
    """Where snapshots go; `twopc.state.storage.CheckpointStorage` is one."""

    def put(
        self, checkpoint_id: CheckpointId, subtask: SubtaskIndex, local_folder: Path, key_count: int
    ) -> StateHandle: ...


@dataclass(frozen=True, slots=True)
class LocalSnapshot:
    """A snapshot that was taken and not yet stored; `key_count` is an estimate, for people."""

    checkpoint_id: CheckpointId
    folder: Path
    key_count: int


class SubtaskStore:
    """Takes snapshots of one subtask's state, and stores them. `take` is the loop's, `put` the storing thread's."""

    def __init__(
        self, subtask: SubtaskIndex, backend: StateBackend, storage: SnapshotStorage, work_folder: Path
    ) -> None:
        self._subtask = subtask
        self._backend = backend
        self._storage = storage
        self._work_folder = work_folder

    def take(self, checkpoint_id: CheckpointId, positions: tuple[PartitionPosition, ...]) -> LocalSnapshot:
        """Write positions and state into a local folder of their own; raise CheckpointDeclined if the disk refuses."""
        folder = self._work_folder / f"snapshot-{checkpoint_id}"
        try:
            write_positions(self._backend, positions)
            self._backend.snapshot(folder)
        except OSError as error:
            raise CheckpointDeclined(f"no snapshot could be taken in {folder.parent}: {error}") from error
        return LocalSnapshot(checkpoint_id, folder, self._backend.key_count())

    def put(self, taken: LocalSnapshot) -> StateHandle:
        """Store a snapshot that was taken, and let go of the local folder; raises CheckpointDeclined."""
        try:
            return self._storage.put(taken.checkpoint_id, self._subtask, taken.folder, taken.key_count)
        finally:
            shutil.rmtree(taken.folder, ignore_errors=True)
