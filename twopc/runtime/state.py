"""What a subtask keeps and stores: its backend and the checkpoint storage, as the loop sees them."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from twopc.errors import CheckpointDeclined
from twopc.protocol.facts import PartitionPosition, StateHandle
from twopc.protocol.ids import CheckpointId, SubtaskIndex
from twopc.state.backend import Frozen, StateBackend
from twopc.state.positions import write_positions


class SnapshotStorage(Protocol):
    """Where snapshots go; `twopc.state.storage.CheckpointStorage` is one."""

    def put(
        self, checkpoint_id: CheckpointId, subtask: SubtaskIndex, local_folder: Path, key_count: int
    ) -> StateHandle: ...


@dataclass(frozen=True, slots=True)
class Taken:
    """What a snapshot will hold, fixed and not yet written; `key_count` is an estimate, for people."""

    checkpoint_id: CheckpointId
    state: Frozen
    folder: Path
    key_count: int


class SubtaskStore:
    """Takes snapshots of one subtask's state. `take` is the loop's; other threads `write` and `put`."""

    def __init__(
        self, subtask: SubtaskIndex, backend: StateBackend, storage: SnapshotStorage, work_folder: Path
    ) -> None:
        self._subtask = subtask
        self._backend = backend
        self._storage = storage
        self._work_folder = work_folder

    def take(self, checkpoint_id: CheckpointId, positions: tuple[PartitionPosition, ...]) -> Taken:
        """Fix positions and state; raise CheckpointDeclined if the disk refuses."""
        folder = self._work_folder / f"snapshot-{checkpoint_id}"
        try:
            write_positions(self._backend, positions)
        except OSError as error:
            raise CheckpointDeclined(f"no snapshot could be taken in {folder.parent}: {error}") from error
        return Taken(checkpoint_id, self._backend.freeze(), folder, self._backend.key_count())

    def write(self, taken: Taken) -> None:
        """Write what was taken into a local folder of its own; raises CheckpointDeclined."""
        try:
            taken.state.write(taken.folder)
        except CheckpointDeclined:
            shutil.rmtree(taken.folder, ignore_errors=True)
            raise

    def put(self, taken: Taken) -> StateHandle:
        """Store a snapshot that was written, and let go of the local folder; raises CheckpointDeclined."""
        try:
            return self._storage.put(taken.checkpoint_id, self._subtask, taken.folder, taken.key_count)
        finally:
            shutil.rmtree(taken.folder, ignore_errors=True)
