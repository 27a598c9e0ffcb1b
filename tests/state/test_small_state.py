"""A state that is small stands in the checkpoint's metadata: no file of it is written, and it restores as any other."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from tests.snapshots import changed
from tests.state.stored import everything
from twopc.errors import CheckpointCorrupted, Unavailable
from twopc.kafka.positions.partition_position import PartitionPosition
from twopc.kafka.topic_partition import Position, TopicPartition
from twopc.partition_groups import concerning
from twopc.protocol.facts import StateHandle, SubtaskSnapshot
from twopc.protocol.ids import CheckpointId, SubtaskIndex
from twopc.runtime.state import SubtaskStore
from twopc.state.backend import Family, StateBackend
from twopc.state.keyed import KeyedState, OperatorState
from twopc.state.layout import StateName, state_prefix
from twopc.state.positions import read_positions
from twopc.state.restore import restore_state
from twopc.state.rocksdb import RocksDBBackend
from twopc.state.snapshot_store import SnapshotStore
from twopc.storage.local import LocalStore

COUNT = StateName.parse("count")
STORED = state_prefix(COUNT, 0)
LIMIT = 2_000
PARTITIONS = [TopicPartition("in", number) for number in range(4)]


def share(subtask: int, parallelism: int) -> list[TopicPartition]:
    return PARTITIONS[subtask::parallelism]


class Job:
    """Attempts, one after another, each restored from the snapshots that the one before returned."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "store").mkdir()
        self.storage = SnapshotStore(LocalStore(folder / "store"))
        self.number = 0

    def restore(self, snapshots: list[SubtaskSnapshot], subtask: int = 0, parallelism: int = 1) -> StateBackend:
        mine = [each.partition for each in share(subtask, parallelism)]
        concerned = concerning(SubtaskIndex(subtask), mine, snapshots)
        return restore_state(self.storage, concerned, mine, SubtaskIndex(subtask), self.folder / f"work-{subtask}")

    def store_of(self, backend: StateBackend, subtask: int = 0, *, limit: int = LIMIT) -> SubtaskStore:
        return SubtaskStore(SubtaskIndex(subtask), backend, self.storage, self.folder / "work-0", limit)

    def checkpoint(self, store: SubtaskStore, subtask: int = 0, parallelism: int = 1) -> SubtaskSnapshot:
        self.number += 1
        positions = tuple(
            PartitionPosition(each, "an-id", Position(self.number)).to_split_position()
            for each in share(subtask, parallelism)
        )
        taken = store.take(CheckpointId(self.number), positions)
        if isinstance(taken, StateHandle):
            return SubtaskSnapshot.of(SubtaskIndex(subtask), positions, taken, ())
        store.write(taken)
        return SubtaskSnapshot.of(SubtaskIndex(subtask), positions, store.put(taken), ())

    def files(self) -> list[Path]:
        return [path for path in (self.folder / "store").rglob("*") if path.is_file()]


@pytest.fixture
def job(tmp_path: Path) -> Job:
    return Job(tmp_path)


def put(backend: StateBackend, partition: TopicPartition, key: bytes, value: bytes | None) -> None:
    KeyedState(backend).put_many(COUNT, partition.partition, [key], [value])


def test_a_job_without_state_of_its_own_stores_no_file(job: Job) -> None:
    backend = job.restore([])
    store = job.store_of(backend)
    snapshots = [job.checkpoint(store) for _ in range(3)]
    backend.close()
    assert [each.state.manifest for each in snapshots] == [None] * 3
    assert job.files() == []
    restored = job.restore(snapshots[1:2])
    assert set(read_positions(restored)) == set(snapshots[1].positions)
    restored.close()


def test_what_it_says_of_itself_is_where_it_would_be_and_how_much_there_is(job: Job) -> None:
    backend = job.restore([])
    put(backend, PARTITIONS[0], b"a", b"1")
    state = job.checkpoint(job.store_of(backend)).state
    stored = sum(len(key) + len(value) for items in everything(backend) for key, value in items)
    backend.close()
    assert (state.path, state.size_bytes, state.key_count) == ("chk-1/subtask-0", stored, 1)


@pytest.mark.parametrize(("more", "in_files"), [(0, False), (1, True)])
def test_the_limit_is_the_largest_that_goes_without_files(job: Job, more: int, in_files: bool) -> None:
    backend = job.restore([])
    store = job.store_of(backend)
    rest = LIMIT - job.checkpoint(store).state.size_bytes
    OperatorState(backend).put("own", b"x" * (rest - len("own") + more))
    state = job.checkpoint(store).state
    backend.close()
    assert (state.manifest is not None) is in_files
    assert in_files or state.size_bytes == LIMIT


def test_with_a_limit_of_nothing_all_is_in_files(job: Job) -> None:
    backend = job.restore([])
    store = job.store_of(backend, limit=0)
    states = [job.checkpoint(store).state for _ in range(2)]
    backend.close()
    assert [each.manifest for each in states] == ["chk-1/subtask-0.json", "chk-2/subtask-0.json"]


def test_a_state_that_was_in_files_and_is_small_goes_without_them_after_a_restart(job: Job) -> None:
    backend = job.restore([])
    put(backend, PARTITIONS[0], b"a", b"1")
    store = job.store_of(backend, limit=0)
    job.checkpoint(store)
    put(backend, PARTITIONS[0], b"b", b"2")
    stored, before = job.checkpoint(store), everything(backend)
    backend.close()
    restored = job.restore([stored])
    assert everything(restored) == before
    small = job.checkpoint(job.store_of(restored))
    after = everything(restored)
    restored.close()
    assert small.state.manifest is None
    again = job.restore([small])
    assert everything(again) == after
    again.close()


def test_a_large_state_is_in_files_after_a_restart_too(job: Job) -> None:
    backend = job.restore([])
    for number in range(3_000):
        put(backend, PARTITIONS[0], b"%06d" % number, b"x")
    stored = job.checkpoint(job.store_of(backend))
    backend.close()
    restored = job.restore([stored])
    assert restored.changes() is None
    assert job.checkpoint(job.store_of(restored)).state.manifest is not None
    restored.close()


@pytest.mark.parametrize("parallelisms", [(1, 2), (2, 1), (2, 3), (1, 4), (3, 1, 3)])
def test_rescaling_keeps_every_key_with_its_partition_and_needs_no_file(
    job: Job, parallelisms: tuple[int, ...]
) -> None:
    snapshots: list[SubtaskSnapshot] = []
    for attempt, parallelism in enumerate(parallelisms):
        taken = []
        for subtask in range(parallelism):
            backend = job.restore(snapshots, subtask, parallelism)
            mine = share(subtask, parallelism)
            for partition in mine:
                if attempt == 0:
                    put(backend, partition, b"a", str(partition).encode())
                assert KeyedState(backend).get_many(COUNT, partition.partition, [b"a"]) == [str(partition).encode()]
            assert len(list(backend.scan(Family.KEYED))) == len(mine)
            taken.append(job.checkpoint(job.store_of(backend, subtask), subtask, parallelism))
            backend.close()
        snapshots = taken
    assert {each.state.manifest for each in snapshots} == {None}
    assert job.files() == []


def test_what_is_opened_to_look_at_takes_no_more(job: Job, tmp_path: Path) -> None:
    backend = job.restore([])
    put(backend, PARTITIONS[0], b"a", b"1")
    state, before = job.checkpoint(job.store_of(backend)).state, everything(backend)
    backend.close()
    job.storage.fetch(state, tmp_path / "fetched")
    opened = RocksDBBackend.open_read_only(tmp_path / "fetched")
    try:
        assert everything(opened) == before
        with pytest.raises(OSError, match="can't write"):
            opened.put_many(Family.KEYED, [(b"more", b"")])
    finally:
        opened.close()


@pytest.mark.parametrize("items", [{"elsewhere": []}, {"keyed": [["zz", "00"]]}, {"keyed": 1}, {"positions": [[None]]}])
def test_items_that_no_backend_wrote_are_refused_with_the_place(job: Job, items: dict[str, object]) -> None:
    with pytest.raises(CheckpointCorrupted, match="chk-7/subtask-0"):
        job.storage.fetch(StateHandle.inline("chk-7/subtask-0", items, 0, 0), job.folder / "fetched")
    assert not (job.folder / "fetched").exists()


def test_items_that_stand_elsewhere_than_the_metadata_says_are_refused(job: Job) -> None:
    backend = job.restore([])
    snapshot = job.checkpoint(job.store_of(backend))
    backend.close()
    moved = replace(snapshot.positions[0], position=Position(99))
    with pytest.raises(CheckpointCorrupted, match="chk-1/subtask-0"):
        job.restore([changed(snapshot, positions=(moved, *snapshot.positions[1:]))])


def test_where_it_can_not_be_opened_says_so(job: Job) -> None:
    with pytest.raises(Unavailable, match=r"chk-7/subtask-0 can't be brought to .*nowhere"):
        job.storage.fetch(StateHandle.inline("chk-7/subtask-0", {}, 0, 0), job.folder / "nowhere" / "deep")


@pytest.mark.parametrize("seed", range(3))
def test_whatever_was_written_each_checkpoint_restores_what_it_was_taken_of(
    job: Job, tmp_path: Path, seed: int
) -> None:
    rng, kinds = Random(seed), set()
    backend = job.restore([])
    store = job.store_of(backend, limit=700)
    for number in range(40):
        for _ in range(rng.choice([0, 1, 3])):
            keys = [STORED + b"%04d" % rng.randrange(60) for _ in range(rng.choice([1, 5, 40 if number > 20 else 8]))]
            backend.put_many(Family.KEYED, [(key, rng.choice([None, b"x" * rng.randrange(60)])) for key in keys])
        if rng.random() < 0.2:
            backend.delete_prefix(Family.KEYED, STORED + rng.choice([b"", b"00", b"%03d" % rng.randrange(6)]))
        snapshot, expected = job.checkpoint(store), everything(backend)
        kinds.add(snapshot.state.manifest is None)
        job.storage.fetch(snapshot.state, tmp_path / str(number))
        restored = RocksDBBackend.open_restored(tmp_path / str(number))
        assert everything(restored) == expected, f"seed {seed}, checkpoint {number}"
        restored.close()
        if rng.random() < 0.15:
            backend.close()
            backend = job.restore([snapshot])
            store = job.store_of(backend, limit=700)
    backend.close()
    assert kinds == {False, True}, f"seed {seed}"
