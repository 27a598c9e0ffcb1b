"""The state of a subtask: its backend and the checkpoint storage, as the loop sees them."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from twopc.errors import CheckpointDeclined
from twopc.protocol.facts import SplitPosition, StateHandle
from twopc.protocol.ids import NO_CHECKPOINT, CheckpointId, SubtaskIndex
from twopc.protocol.layout import subtask_folder
from twopc.state.backend import Family, Frozen, StateBackend
from twopc.state.changes import Changes
from twopc.state.positions import write_positions


class SnapshotStorage(Protocol):
    """The storage of snapshots; `twopc.state.snapshot_store.SnapshotStore` is one."""

    def put(
        self, checkpoint_id: CheckpointId, subtask: SubtaskIndex, local_folder: Path, key_count: int
    ) -> StateHandle: ...

    def put_changes(
        self, checkpoint_id: CheckpointId, subtask: SubtaskIndex, base: CheckpointId, written: bytes, key_count: int
    ) -> StateHandle: ...


@dataclass(frozen=True, slots=True)
class LocalSnapshot:
    """A snapshot that is fixed and not yet written; `key_count` is an estimate, for people.

    `state` is whole, or what was written since the whole one that was taken for the checkpoint `base`.
    """

    checkpoint_id: CheckpointId
    state: Frozen | Changes
    base: CheckpointId
    folder: Path
    key_count: int


class SubtaskStore:
    """Takes snapshots of one subtask's state. `take` is the loop's; other threads `write` and `put`.

    A state of at most `inline_bytes` is its own snapshot, and nothing of it is stored here. Else the first one is
    whole, and so is each that follows a failure: changes may only stand on what was stored.
    """

    def __init__(
        self,
        subtask: SubtaskIndex,
        backend: StateBackend,
        storage: SnapshotStorage,
        work_folder: Path,
        inline_bytes: int,
    ) -> None:
        self._subtask = subtask
        self._backend = backend
        self._storage = storage
        self._work_folder = work_folder
        self._inline_bytes = inline_bytes
        self._base = NO_CHECKPOINT
        self._whole_next = True

    def take(self, checkpoint_id: CheckpointId, positions: tuple[SplitPosition, ...]) -> LocalSnapshot | StateHandle:
        """Fix positions and state; raise CheckpointDeclined if the disk refuses."""
        folder = self._work_folder / f"snapshot-{checkpoint_id}"
        try:
            write_positions(self._backend, positions)
        except OSError as error:
            raise CheckpointDeclined(f"no snapshot could be taken in {folder.parent}: {error}") from error
        changes = self._backend.changes()
        if changes is not None and changes.is_whole and (size := changes.size_bytes) <= self._inline_bytes:
            path = subtask_folder(checkpoint_id, self._subtask)
            return StateHandle.inline(path, changes.items, size, len(changes.families[Family.KEYED]))
        state: Frozen | Changes
        if changes is None or changes.is_whole or self._whole_next:
            self._whole_next = False
            state, self._base = self._backend.freeze(), checkpoint_id
        else:
            state = changes
        return LocalSnapshot(checkpoint_id, state, self._base, folder, self._backend.key_count())

    def write(self, taken: LocalSnapshot) -> None:
        """Write what was taken into a local folder of its own; raises CheckpointDeclined."""
        if isinstance(taken.state, Changes):
            return
        try:
            taken.state.write(taken.folder)
        except CheckpointDeclined:
            self._whole_next = True
            shutil.rmtree(taken.folder, ignore_errors=True)
            raise

    def put(self, taken: LocalSnapshot) -> StateHandle:
        """Store a snapshot that was written, and let go of the local folder; raises CheckpointDeclined."""
        try:
            return self._put(taken)
        except CheckpointDeclined:
            self._whole_next = True
            raise

    def _put(self, taken: LocalSnapshot) -> StateHandle:
        if isinstance(taken.state, Changes):
            written = taken.state.encode()
            return self._storage.put_changes(taken.checkpoint_id, self._subtask, taken.base, written, taken.key_count)
        try:
            return self._storage.put(taken.checkpoint_id, self._subtask, taken.folder, taken.key_count)
        finally:
            shutil.rmtree(taken.folder, ignore_errors=True)
