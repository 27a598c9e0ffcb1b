"""What every source owes: whatever is read, from whatever position, is read once and in the order of its split."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from line_files import LineFiles

from tests.kafka.kit import settings
from tests.source.memory import MemorySource
from twopc import KafkaSource
from twopc.config import RunSettings
from twopc.connect import JobContext, Row, Source, SourceReader, Split, SplitPosition, SubtaskContext
from twopc.protocol.codec import from_json, to_json
from twopc.protocol.ids import AttemptId, CheckpointId, SubtaskIndex
from twopc.testing.broker import Broker
from twopc.testing.topics import Write, create_topic, delete_topic, produce

POLLS = 3_000
POLL_SECONDS = 0.02


class Input(ABC):
    """An input of two splits, and the source that reads it."""

    source: Source
    settings = RunSettings()

    @abstractmethod
    def write(self, number: int, *values: bytes) -> None:
        """Append to one of the splits."""

    def plan(self, restored: Sequence[SplitPosition] = (), *, bounded: bool = True) -> list[Split]:
        context = JobContext("contract", AttemptId(1), 1, self.settings)
        # What a checkpoint stores is JSON.
        held = [from_json(SplitPosition, json.loads(json.dumps(to_json(each)))) for each in restored]
        with self.source.open_planner(context) as planner:
            return planner.plan({each.split: each for each in held}, bounded)

    def open(self, splits: Sequence[Split]) -> SourceReader:
        given = [from_json(Split, json.loads(json.dumps(to_json(split)))) for split in splits]
        context = SubtaskContext("contract", AttemptId(1), 1, self.settings, SubtaskIndex(0))
        return self.source.open_reader(context, given)


class MemoryInput(Input):
    def __init__(self) -> None:
        self.source: MemorySource = MemorySource()

    def write(self, number: int, *values: bytes) -> None:
        self.source.lists[number].extend(values)


class FolderInput(Input):
    """A file for each of the two buckets."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.source: LineFiles = LineFiles(folder, buckets=2)
        self._files: dict[int, Path] = {}
        for name in (f"{letter}.txt" for letter in "abcdefgh"):
            (folder / name).touch()
            self._files.setdefault(next(n for n in range(2) if folder / name in self.source.files(n)), folder / name)

    def write(self, number: int, *values: bytes) -> None:
        with self._files[number].open("ab") as file:
            file.writelines(value + b"\n" for value in values)


class TopicInput(Input):
    def __init__(self, broker: Broker, topic: str) -> None:
        self.settings = settings(broker.bootstrap_servers)
        self._servers, self._topic = broker.bootstrap_servers, topic
        create_topic(self._servers, topic, 2)
        self.source = KafkaSource(topic)

    def write(self, number: int, *values: bytes) -> None:
        produce(self._servers, self._topic, [Write(value, partition=number) for value in values])


@pytest.fixture(params=["memory", "folder", pytest.param("topic", marks=pytest.mark.broker)])
def given(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Input]:
    if request.param == "memory":
        yield MemoryInput()
    elif request.param == "folder":
        yield FolderInput(tmp_path)
    else:
        broker: Broker = request.getfixturevalue("broker")
        name = f"contract-{uuid4().hex[:8]}"
        yield TopicInput(broker, name)
        delete_topic(broker.bootstrap_servers, name)


@pytest.fixture
def reader_of(given: Input) -> Iterator[Callable[[Sequence[Split]], SourceReader]]:
    opened: list[SourceReader] = []

    def open_reader(splits: Sequence[Split]) -> SourceReader:
        opened.append(given.open(splits))
        return opened[-1]

    yield open_reader
    for reader in opened:
        reader.close()


def read(reader: SourceReader, enough: int | None = None, most: int = 100) -> list[tuple[Row, bytes]]:
    """Read to the end, or until there is enough."""
    found: list[tuple[Row, bytes]] = []
    for _ in range(POLLS):
        if reader.finished() or (enough is not None and len(found) >= enough):
            return found
        batch = reader.poll(POLL_SECONDS, most)
        if batch is not None:
            assert len(batch) <= most
            found += zip(batch.rows, batch.values, strict=True)
    raise AssertionError(f"after {POLLS} polls there is {found}")


def by_split(found: Sequence[tuple[Row, bytes]]) -> dict[Any, list[bytes]]:
    values: dict[Any, list[bytes]] = {}
    for row, value in found:
        values.setdefault(row.partition(), []).append(value)
    return values


Open = Callable[[Sequence[Split]], SourceReader]


def test_a_bounded_read_gives_every_record_once_in_the_order_of_its_split(given: Input, reader_of: Open) -> None:
    given.write(0, b"a", b"b", b"c")
    given.write(1, b"x", b"y")
    reader = reader_of(given.plan())
    assert by_split(read(reader)) == {0: [b"a", b"b", b"c"], 1: [b"x", b"y"]}
    assert reader.poll(0, 100) is None


def test_splits_have_ids_of_their_own_and_the_numbers_of_their_partition_groups(given: Input) -> None:
    splits = given.plan()
    assert len({split.id for split in splits}) == len(splits) == 2
    assert [split.partition for split in splits] == [0, 1]
    assert [split.id for split in given.plan()] == [split.id for split in splits]


def test_positions_before_the_first_poll_are_the_starts(given: Input, reader_of: Open) -> None:
    given.write(0, b"a")
    splits = given.plan()
    assert list(reader_of(splits).positions()) == [split.begin for split in splits]


@pytest.mark.parametrize("stops_after", [1, 2, 3, 4])
def test_whoever_goes_on_from_the_positions_reads_the_rest_and_nothing_else(
    given: Input, reader_of: Open, stops_after: int
) -> None:
    given.write(0, b"a", b"b", b"c")
    given.write(1, b"x", b"y")
    first = reader_of(given.plan())
    before = read(first, stops_after, most=1)
    after = read(reader_of(given.plan(first.positions())))
    assert by_split([*before, *after]) == {0: [b"a", b"b", b"c"], 1: [b"x", b"y"]}


@pytest.mark.parametrize("done", [0, 1, 3])
def test_what_waits_to_be_processed_is_read_again_from_the_positions(given: Input, reader_of: Open, done: int) -> None:
    given.write(0, b"a", b"b", b"c")
    given.write(1, b"x", b"y")
    first = reader_of(given.plan())
    found = read(first)
    waiting = [row for row, _ in found[done:]]
    again = read(reader_of(given.plan(first.positions(waiting))))
    assert by_split([*found[:done], *again]) == {0: [b"a", b"b", b"c"], 1: [b"x", b"y"]}


def test_what_comes_after_a_bounded_plan_is_left_to_the_next(given: Input, reader_of: Open) -> None:
    given.write(0, b"a")
    splits = given.plan()
    given.write(0, b"later")
    given.write(1, b"later")
    reader = reader_of(splits)
    assert by_split(read(reader)) == {0: [b"a"]}
    assert by_split(read(reader_of(given.plan(reader.positions())))) == {0: [b"later"], 1: [b"later"]}


def test_an_unbounded_read_goes_on_with_what_comes(given: Input, reader_of: Open) -> None:
    given.write(0, b"a")
    reader = reader_of(given.plan(bounded=False))
    assert by_split(read(reader, 1)) == {0: [b"a"]}
    given.write(0, b"b")
    given.write(1, b"x")
    assert by_split(read(reader, 2)) == {0: [b"b"], 1: [b"x"]}
    assert not reader.finished()


def test_an_unbounded_read_that_is_bounded_ends_where_the_input_does(given: Input, reader_of: Open) -> None:
    given.write(0, b"a", b"b")
    reader = reader_of(given.plan(bounded=False))
    before = read(reader, 1, most=1)
    assert reader.bound()
    assert reader.bound()
    assert by_split([*before, *read(reader)]) == {0: [b"a", b"b"]}
    assert reader.finished()


def test_a_reader_without_splits_is_finished(reader_of: Open) -> None:
    reader = reader_of([])
    assert reader.finished()
    assert (reader.poll(0, 100), reader.positions()) == (None, ())


def test_the_input_that_was_read_is_seen_to_be_the_same(given: Input, reader_of: Open) -> None:
    given.write(0, b"a")
    reader = reader_of(given.plan())
    read(reader)
    reader.check_input(CheckpointId(1))


def test_the_source_tells_which_of_two_positions_comes_first(given: Input, reader_of: Open) -> None:
    given.write(0, b"a", b"b")
    reader = reader_of(given.plan())
    begin = reader.positions()[0]
    read(reader)
    end = reader.positions()[0]
    assert given.source.precedes(begin, end)
    assert not given.source.precedes(end, begin)
    assert not given.source.precedes(end, end)


def test_a_position_is_text_for_people(given: Input, reader_of: Open) -> None:
    reader = reader_of(given.plan())
    assert all(str(held) == f"{held.split}@0" for held in reader.positions())


def test_what_was_read_can_be_read_again(given: Input, reader_of: Open) -> None:
    given.write(0, b"a")
    splits = given.plan()
    read(reader_of(splits))
    context = JobContext("contract", AttemptId(1), 1, given.settings)
    with given.source.open_planner(context) as planner:
        assert planner.unreadable([split.begin for split in splits]) == {}
