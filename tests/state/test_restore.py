"""A subtask's state is put together again, whatever the parallelism was."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.snapshots import changed
from tests.stored_job import stored_path
from twopc.errors import CheckpointCorrupted
from twopc.kafka.positions.partition_position import PartitionPosition
from twopc.kafka.topic_partition import Position, TopicPartition
from twopc.partition_groups import concerning, owner
from twopc.protocol.facts import SplitPosition, SubtaskSnapshot
from twopc.protocol.ids import CheckpointId, SubtaskIndex
from twopc.state.backend import Family, StateBackend
from twopc.state.keyed import KeyedState, OperatorState
from twopc.state.layout import StateName
from twopc.state.positions import write_positions
from twopc.state.restore import restore_state
from twopc.state.snapshot_store import SnapshotStore
from twopc.storage.local import LocalStore

COUNT, SUM = StateName.parse("count"), StateName("sums", "sum")
NUMBERS = range(7)
KEYS = [b"k%03d" % number for number in range(200)]


def share(subtask: int, parallelism: int) -> list[int]:
    return [number for number in NUMBERS if owner(number, parallelism) == subtask]


def value(state: StateName, number: int, key: bytes) -> bytes:
    return f"{state} of {number}:".encode() + key


def at(number: int, topic: str = "in", position: int = 10) -> SplitPosition:
    partition = TopicPartition(topic, number)
    return PartitionPosition(partition, f"id-of-{topic}", Position(position)).to_split_position()


class Job:
    """Restores, checkpoints and restores again, at one parallelism after another."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "store").mkdir()
        self.storage = SnapshotStore(LocalStore(folder / "store"))
        self.checkpoint = 0

    def restore(self, snapshots: Sequence[SubtaskSnapshot], subtask: int, mine: list[int]) -> StateBackend:
        work = self.folder / f"work-{self.checkpoint}-{subtask}"
        concerned = concerning(SubtaskIndex(subtask), mine, snapshots)
        return restore_state(self.storage, concerned, mine, SubtaskIndex(subtask), work)

    def store(self, backend: StateBackend, subtask: int, mine: list[int]) -> SubtaskSnapshot:
        positions = tuple(at(number, topic) for number in mine for topic in ("in", "in2"))
        write_positions(backend, positions)
        folder = self.folder / f"snapshot-{self.checkpoint}-{subtask}"
        backend.snapshot(folder)
        index = SubtaskIndex(subtask)
        handle = self.storage.put(CheckpointId(self.checkpoint), index, folder, backend.key_count())
        return SubtaskSnapshot.of(index, positions, handle, ())

    def run(
        self, snapshots: Sequence[SubtaskSnapshot], parallelism: int, *, write: bool = False
    ) -> list[SubtaskSnapshot]:
        """Restore all subtasks, write all keys or expect them, and take the next checkpoint."""
        self.checkpoint += 1
        taken = []
        for subtask in range(parallelism):
            mine = share(subtask, parallelism)
            backend = self.restore(snapshots, subtask, mine)
            try:
                if write:
                    for number, state in product(mine, (COUNT, SUM)):
                        KeyedState(backend).put_many(state, number, KEYS, [value(state, number, key) for key in KEYS])
                    OperatorState(backend).put("own", b"of %d" % subtask)
                else:
                    self._expect_state_of(backend, mine)
                taken.append(self.store(backend, subtask, mine))
            finally:
                backend.close()
        return taken

    def expect_everything(self, snapshots: Sequence[SubtaskSnapshot], parallelism: int) -> None:
        """Restored at this parallelism, each subtask has the state of its own numbers, and nothing else."""
        self.checkpoint += 1
        for subtask in range(parallelism):
            mine = share(subtask, parallelism)
            backend = self.restore(snapshots, subtask, mine)
            try:
                self._expect_state_of(backend, mine)
            finally:
                backend.close()

    def _expect_state_of(self, backend: StateBackend, mine: list[int]) -> None:
        for number, state in product(mine, (COUNT, SUM)):
            expected = [value(state, number, key) for key in KEYS]
            assert KeyedState(backend).get_many(state, number, KEYS) == expected
        assert len(list(backend.scan(Family.KEYED))) == 2 * len(mine) * len(KEYS)


@pytest.fixture
def job(tmp_path: Path) -> Job:
    return Job(tmp_path)


def test_without_snapshots_the_state_is_empty(job: Job) -> None:
    backend = job.restore([], 0, list(NUMBERS))
    try:
        assert [list(backend.scan(family)) for family in Family] == [[], [], []]
    finally:
        backend.close()


@pytest.mark.parametrize("parallelisms", [(1, 1), (2, 2), (1, 3, 2), (3, 1, 3), (2, 7), (2, 9)])
def test_rescaling_keeps_every_key_with_its_partition(job: Job, parallelisms: tuple[int, ...]) -> None:
    first, *rest = parallelisms
    snapshots = job.run([], first, write=True)
    for parallelism in rest:
        snapshots = job.run(snapshots, parallelism)
    job.expect_everything(snapshots, 1)


@settings(max_examples=3, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(parallelisms=st.lists(st.integers(1, 8), min_size=2, max_size=3))
def test_any_rescaling_keeps_every_key(tmp_path_factory: pytest.TempPathFactory, parallelisms: list[int]) -> None:
    job = Job(tmp_path_factory.mktemp("job"))
    snapshots = job.run([], parallelisms[0], write=True)
    for parallelism in parallelisms[1:]:
        snapshots = job.run(snapshots, parallelism)
    job.expect_everything(snapshots, 1)


def test_a_new_partition_starts_without_state_beside_the_old_ones(job: Job) -> None:
    snapshots = job.run([], 2, write=True)
    backend = job.restore(snapshots, 1, [*share(1, 2), 99])
    try:
        old = share(1, 2)[0]
        assert KeyedState(backend).get_many(COUNT, 99, KEYS[:1]) == [None]
        assert KeyedState(backend).get_many(COUNT, old, KEYS[:1]) == [value(COUNT, old, KEYS[0])]
    finally:
        backend.close()


@pytest.mark.parametrize(("before", "after"), [(2, 2), (1, 3), (3, 2), (2, 3)])
def test_operator_state_goes_to_the_subtask_of_the_same_index(job: Job, before: int, after: int) -> None:
    snapshots = job.run([], before, write=True)
    found = []
    for subtask in range(after):
        backend = job.restore(snapshots, subtask, share(subtask, after))
        found.append(OperatorState(backend).get("own"))
        backend.close()
    assert found == [b"of %d" % subtask if subtask < before else None for subtask in range(after)]


def test_what_an_earlier_attempt_left_in_the_work_folder_is_not_restored(job: Job) -> None:
    snapshots = job.run([], 1, write=True)
    left = job.restore([], 0, list(NUMBERS))
    KeyedState(left).put_many(COUNT, 0, [b"left"], [b"over"])
    left.snapshot(job.folder / "flushed")
    left.close()
    backend = job.restore(snapshots, 0, list(NUMBERS))
    try:
        assert KeyedState(backend).get_many(COUNT, 0, [b"left"]) == [None]
    finally:
        backend.close()


def test_nothing_but_the_state_stays_in_the_work_folder(job: Job) -> None:
    snapshots = job.run([], 3, write=True)
    job.restore(snapshots, 0, list(NUMBERS)).close()
    assert [path.name for path in (job.folder / "work-1-0").iterdir()] == ["state"]


def test_state_that_stands_elsewhere_than_its_metadata_says_is_refused(job: Job) -> None:
    (snapshot,) = job.run([], 1, write=True)
    moved = changed(snapshot, positions=(*snapshot.positions[:-1], at(6, "in2", 11)))
    with pytest.raises(CheckpointCorrupted, match="chk-1/subtask-0"):
        job.restore([moved], 0, list(NUMBERS))


def test_two_snapshots_of_one_partition_are_refused(job: Job) -> None:
    first, second = job.run([], 2, write=True)
    doubled = changed(second, positions=(*second.positions, first.positions[0]))
    with pytest.raises(CheckpointCorrupted, match="one owner"):
        job.restore([first, doubled], 0, list(NUMBERS))


@pytest.mark.parametrize("parallelism", [2, 1])
def test_a_damaged_snapshot_is_refused_by_name_and_lets_go_of_everything(job: Job, parallelism: int) -> None:
    snapshots = job.run([], 2, write=True)
    damaged = stored_path(job.folder / "store", f"{snapshots[0].state.path}/MANIFEST-*")
    damaged.write_bytes(damaged.read_bytes()[:-20])
    with pytest.raises(CheckpointCorrupted, match=str(damaged)):
        job.restore(snapshots, 0, share(0, parallelism))
    job.restore([], 0, list(NUMBERS)).close()
