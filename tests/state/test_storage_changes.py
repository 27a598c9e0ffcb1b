"""A snapshot of which little was written since the one before: the same files, and one with what was written."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

import pytest

from tests.checkpoints.damages import DAMAGES, Damage
from tests.state.stored import SUBTASK, Subtask, everything
from tests.stored_job import stored_files
from twopc.errors import CheckpointCorrupted, CheckpointDeclined
from twopc.protocol.facts import SplitPosition, StateHandle
from twopc.protocol.ids import CheckpointId
from twopc.runtime.state import LocalSnapshot, SubtaskStore
from twopc.state.backend import Family
from twopc.state.positions import read_positions
from twopc.state.rocksdb import RocksDBBackend
from twopc.state.snapshot_store import SnapshotStore
from twopc.storage.local import LocalStore


@dataclass
class Job:
    """A subtask's state, whose checkpoints are numbered from 1."""

    subtask: Subtask
    number: int = 0

    def __post_init__(self) -> None:
        self.store = SubtaskStore(SUBTASK, self.subtask.backend, self.subtask.storage, self.subtask.local, 0)

    def checkpoint(self, *, written: Sequence[tuple[bytes, bytes | None]] = ()) -> StateHandle:
        if written:
            self.subtask.backend.put_many(Family.KEYED, written)
        self.number += 1
        taken = self.take(self.number)
        self.store.write(taken)
        return self.store.put(taken)

    def take(self, number: int) -> LocalSnapshot:
        taken = self.store.take(CheckpointId(number), at(number))
        assert isinstance(taken, LocalSnapshot)
        return taken

    def files(self, handle: StateHandle) -> dict[str, Path]:
        return stored_files(self.subtask.root, handle.path)


def at(position: int) -> tuple[SplitPosition, ...]:
    return (SplitPosition("in[0]", 0, [position, "an-id"]),)


@pytest.fixture
def job(subtask: Subtask) -> Job:
    return Job(subtask)


def restored(job: Job, handle: StateHandle, folder: Path) -> list[list[tuple[bytes, bytes]]]:
    SnapshotStore(LocalStore(job.subtask.root)).fetch(handle, folder)
    backend = RocksDBBackend.open_restored(folder)
    try:
        return everything(backend)
    finally:
        backend.close()


def test_where_only_positions_moved_rocksdb_writes_nothing(job: Job) -> None:
    files = [job.files(job.checkpoint()) for _ in range(3)]
    shared = [{name: path for name, path in each.items() if name != "changes.json"} for each in files]
    assert shared[0] == shared[1] == shared[2]
    assert "changes.json" in files[2]


def test_the_positions_are_in_the_state_that_is_restored(job: Job, tmp_path: Path) -> None:
    handles = [job.checkpoint() for _ in range(3)]
    for number, handle in enumerate(handles):
        job.subtask.storage.fetch(handle, tmp_path / str(number))
        backend = RocksDBBackend.open_restored(tmp_path / str(number))
        assert read_positions(backend) == at(1 + number)
        backend.close()


def test_what_is_opened_to_look_at_has_the_changes_and_takes_no_more(job: Job, tmp_path: Path) -> None:
    job.checkpoint()
    handle = job.checkpoint(written=[(b"new", b"1"), (b"000001", None)])
    job.subtask.storage.fetch(handle, tmp_path / "fetched")
    backend = RocksDBBackend.open_read_only(tmp_path / "fetched")
    try:
        assert everything(backend) == everything(job.subtask.backend)
        with pytest.raises(OSError, match="can't write"):
            backend.put_many(Family.KEYED, [(b"more", b"")])
    finally:
        backend.close()


def test_it_is_whole_by_itself_when_those_before_are_deleted(job: Job, tmp_path: Path) -> None:
    handles = [job.checkpoint(written=[(b"a", b"%d" % number)]) for number in range(3)]
    for handle in handles[:-1]:
        shutil.rmtree(job.subtask.root / handle.path.partition("/")[0])
    assert restored(job, handles[-1], tmp_path / "fetched") == everything(job.subtask.backend)


def test_a_deleted_range_is_stored_by_rocksdb(job: Job, tmp_path: Path) -> None:
    job.checkpoint()
    job.subtask.backend.delete_prefix(Family.KEYED, b"0000")
    handle = job.checkpoint()
    assert "changes.json" not in job.files(handle)
    assert restored(job, handle, tmp_path / "fetched") == everything(job.subtask.backend)


def test_after_one_that_was_not_stored_the_next_is_whole(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    job.checkpoint()
    with monkeypatch.context() as broken:
        broken.setattr(os, "link", refuse_everything)
        with pytest.raises(CheckpointDeclined):
            job.checkpoint()
    assert "changes.json" not in job.files(job.checkpoint())
    assert "changes.json" in job.files(job.checkpoint())


def refuse_everything(*_: object, **__: object) -> None:
    raise OSError(28, "No space left on device")


def test_changes_to_a_snapshot_that_was_not_stored_are_declined(job: Job) -> None:
    job.checkpoint()
    job.subtask.backend.delete_prefix(Family.KEYED, b"0000")
    lost = job.take(7)
    job.store.write(lost)
    late = job.take(8)
    with pytest.raises(CheckpointDeclined, match="since checkpoint 7, which was not stored"):
        job.store.put(late)


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
def test_damage_to_the_changes_is_refused_by_name(job: Job, tmp_path: Path, damage: Damage) -> None:
    job.checkpoint()
    handle = job.checkpoint()
    path = job.files(handle)["changes.json"]
    damage(path)
    with pytest.raises(CheckpointCorrupted, match=r"changes\.json"):
        job.subtask.storage.fetch(handle, tmp_path / "fetched")


@pytest.mark.parametrize("seed", range(2))
def test_whatever_was_written_and_whatever_failed_each_checkpoint_restores_what_it_was_taken_of(
    job: Job, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    rng = Random(seed)
    for number in range(12):
        for _ in range(rng.choice([0, 1, 3])):
            keys = [b"%06d" % rng.randrange(4_000) for _ in range(rng.choice([1, 5, 2_000]))]
            job.subtask.backend.put_many(Family.KEYED, [(key, rng.choice([None, b"x" * 20])) for key in keys])
        if rng.random() < 0.1:
            job.subtask.backend.delete_prefix(Family.KEYED, b"%03d" % rng.randrange(5))
        with monkeypatch.context() as disk:
            if rng.random() < 0.3:
                disk.setattr(os, "link", refuse_everything)
            try:
                handle = job.checkpoint()
            except CheckpointDeclined:
                continue
        assert restored(job, handle, tmp_path / str(number)) == everything(job.subtask.backend), f"seed {seed}"
