"""Builds a subtask's state from the snapshots of the subtasks before it, at the same parallelism or another.

What goes where: keyed state goes to the subtask that owns its partition number, operator state with the subtask's
index. State of an index, or of a number, that no longer exists is left behind. Positions are in the metadata.

    snapshots that concern the subtask         what happens
    none                                       an empty state
    one                                        that snapshot is opened, and what is not the subtask's is deleted from it
    several                                    what is the subtask's is copied out of each, into an empty state

Which snapshots concern a subtask, and which numbers it owns: `twopc.partition_groups`.
"""

from __future__ import annotations

import shutil
from collections.abc import Collection, Iterable, Sequence
from itertools import islice
from pathlib import Path
from typing import Protocol

from twopc.errors import CheckpointCorrupted
from twopc.listing import listed
from twopc.protocol.facts import StateHandle, SubtaskSnapshot
from twopc.protocol.ids import SubtaskIndex
from twopc.state.backend import Family, StateBackend
from twopc.state.keyed import keyed_states
from twopc.state.layout import state_prefix
from twopc.state.positions import read_positions
from twopc.state.rocksdb import RocksDBBackend

_ITEMS_PER_WRITE = 2_000


class SnapshotSource(Protocol):
    """The source of snapshots; `twopc.state.snapshot_store.SnapshotStore` is one."""

    def fetch(self, state: StateHandle, into: Path) -> None: ...


def restore_state(
    storage: SnapshotSource,
    snapshots: Sequence[SubtaskSnapshot],
    numbers: Collection[int],
    subtask: SubtaskIndex,
    work_folder: Path,
    kind: type[StateBackend] = RocksDBBackend,
) -> StateBackend:
    """Return the open state of `subtask`, which now owns the keyed state of these partition numbers.

    It is in a folder of its own under `work_folder`. `snapshots` are those of the restored checkpoint that concern the
    subtask, or none, of backends of this `kind`. Raises CheckpointCorrupted if one can't be trusted.
    """
    refuse_two_owners(snapshots)
    folder = work_folder / "state"
    work_folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    shutil.rmtree(folder, ignore_errors=True)
    if len(snapshots) == 1:
        return _opened(storage, snapshots[0], numbers, subtask, folder, kind)
    backend = kind.open_fresh(folder)
    try:
        for snapshot in snapshots:
            _copy(storage, snapshot, numbers, subtask, work_folder, backend)
    except BaseException:
        backend.close()
        raise
    return backend


def refuse_two_owners(snapshots: Iterable[SubtaskSnapshot]) -> None:
    """Raise CheckpointCorrupted if a split is in two snapshots."""
    owners: dict[str, SubtaskIndex] = {}
    for snapshot in snapshots:
        for held in snapshot.positions:
            if owners.setdefault(held.split, snapshot.subtask) != snapshot.subtask:
                raise CheckpointCorrupted(
                    f"{held.split} is in the snapshots of subtasks {owners[held.split]} and {snapshot.subtask}: "
                    "a split has one owner, so this checkpoint can't be restored"
                )


def _opened(
    storage: SnapshotSource,
    snapshot: SubtaskSnapshot,
    numbers: Collection[int],
    subtask: SubtaskIndex,
    folder: Path,
    kind: type[StateBackend],
) -> StateBackend:
    """Open the only snapshot that concerns the subtask, and delete the rest of it."""
    backend = _fetched(storage, snapshot, folder, kind)
    try:
        for state, partition in list(keyed_states(backend)):
            if partition not in numbers:
                backend.delete_prefix(Family.KEYED, state_prefix(state, partition))
        if snapshot.subtask != subtask:
            backend.delete_prefix(Family.OPERATOR, b"")
    except BaseException:
        backend.close()
        raise
    return backend


def _copy(
    storage: SnapshotSource,
    snapshot: SubtaskSnapshot,
    numbers: Collection[int],
    subtask: SubtaskIndex,
    work_folder: Path,
    target: StateBackend,
) -> None:
    folder = work_folder / f"restored-{snapshot.subtask}"
    shutil.rmtree(folder, ignore_errors=True)
    try:
        source = _fetched(storage, snapshot, folder, type(target))
        try:
            for state, partition in keyed_states(source):
                if partition in numbers:
                    _copy_range(source, target, Family.KEYED, state_prefix(state, partition))
            if snapshot.subtask == subtask:
                _copy_range(source, target, Family.OPERATOR, b"")
        finally:
            source.close()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _copy_range(source: StateBackend, target: StateBackend, family: Family, prefix: bytes) -> None:
    items = source.scan(family, prefix)
    while some := list(islice(items, _ITEMS_PER_WRITE)):
        target.put_many(family, some)


def _fetched(
    storage: SnapshotSource, snapshot: SubtaskSnapshot, folder: Path, kind: type[StateBackend]
) -> StateBackend:
    """Open a snapshot, verified, in `folder`, and check that it stands where its metadata says."""
    storage.fetch(snapshot.state, folder)
    backend = kind.open_restored(folder)
    try:
        refuse_other_positions(backend, snapshot)
    except BaseException:
        backend.close()
        raise
    return backend


def refuse_other_positions(backend: StateBackend, snapshot: SubtaskSnapshot) -> None:
    """Raise CheckpointCorrupted unless the state stands where the metadata of its checkpoint says."""
    stored = read_positions(backend)
    if set(stored) != set(snapshot.positions):
        raise CheckpointCorrupted(
            f"the state in {snapshot.state.path} does not belong to its checkpoint: it stands at "
            f"{_listed(stored)}, the metadata at {_listed(snapshot.positions)}"
        )


def _listed(positions: Sequence[object]) -> str:
    return listed(positions, "no position")
