"""Builds a subtask's state from the snapshots of the subtasks before it, at the same parallelism or another.

What goes where: keyed state goes with its input split, operator state with the subtask's index, positions are the
snapshot's. State of an index that no longer exists is left behind.

    snapshots that hold something of mine      what happens
    none                                       an empty state
    one                                        that snapshot is opened, and what is not mine is deleted from it
    several                                    what is mine is copied out of each, into an empty state
"""

from __future__ import annotations

import shutil
from collections.abc import Collection, Iterable, Sequence
from itertools import islice
from pathlib import Path
from typing import Protocol

from twopc.errors import CheckpointCorrupted
from twopc.listing import listed
from twopc.protocol.facts import InlineState, StateHandle, SubtaskSnapshot
from twopc.protocol.ids import SubtaskIndex
from twopc.state.backend import Family, StateBackend
from twopc.state.layout import keyed_partition, partition_prefix
from twopc.state.positions import read_positions, write_positions
from twopc.state.rocksdb import RocksDBBackend

_ITEMS_PER_WRITE = 2_000


class SnapshotSource(Protocol):
    """Where snapshots come from; `twopc.state.snapshot_store.SnapshotStore` is one."""

    def fetch(self, state: StateHandle | InlineState, into: Path) -> None: ...


def restore_state(
    storage: SnapshotSource,
    snapshots: Sequence[SubtaskSnapshot],
    splits: Collection[str],
    subtask: SubtaskIndex,
    work_folder: Path,
    kind: type[StateBackend] = RocksDBBackend,
) -> StateBackend:
    """Return the open state of `subtask`, which now reads `splits`, in a folder of its own under `work_folder`.

    `snapshots` are those of the restored checkpoint, or none, of backends of this `kind`. Raises
    CheckpointCorrupted if one can't be trusted.
    """
    mine = frozenset(splits)
    refuse_two_owners(snapshots)
    sources = [snapshot for snapshot in snapshots if snapshot.concerns(subtask, mine)]
    folder = work_folder / "state"
    work_folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    shutil.rmtree(folder, ignore_errors=True)
    if len(sources) == 1:
        return _opened(storage, sources[0], mine, subtask, folder, kind)
    backend = kind.open_fresh(folder)
    try:
        for snapshot in sources:
            _copy(storage, snapshot, mine, subtask, work_folder, backend)
        write_positions(backend, [held for each in sources for held in each.positions if held.split in mine])
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
    mine: frozenset[str],
    subtask: SubtaskIndex,
    folder: Path,
    kind: type[StateBackend],
) -> StateBackend:
    """Open the only snapshot that holds something of mine, and delete the rest of it."""
    backend = _fetched(storage, snapshot, folder, kind)
    try:
        for held in snapshot.positions:
            if held.split not in mine:
                backend.delete_prefix(Family.KEYED, partition_prefix(keyed_partition(held)))
        if snapshot.subtask != subtask:
            backend.delete_prefix(Family.OPERATOR, b"")
        write_positions(backend, [held for held in snapshot.positions if held.split in mine])
    except BaseException:
        backend.close()
        raise
    return backend


def _copy(
    storage: SnapshotSource,
    snapshot: SubtaskSnapshot,
    mine: frozenset[str],
    subtask: SubtaskIndex,
    work_folder: Path,
    target: StateBackend,
) -> None:
    folder = work_folder / f"restored-{snapshot.subtask}"
    shutil.rmtree(folder, ignore_errors=True)
    try:
        source = _fetched(storage, snapshot, folder, type(target))
        try:
            for held in snapshot.positions:
                if held.split in mine:
                    _copy_range(source, target, Family.KEYED, partition_prefix(keyed_partition(held)))
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
