from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from confluent_kafka import Consumer
from confluent_kafka import TopicPartition as Target
from confluent_kafka.admin import AdminClient

from tests.kafka.kit import DrivenSink, drain, eventually, settings
from twopc.context import JobContext, SubtaskContext
from twopc.errors import ConfigurationError
from twopc.kafka.clients.control_client import ControlClient
from twopc.kafka.input.startup_modes import StartingOffsets
from twopc.kafka.positions.partition_position import PartitionSplit, offsets_of
from twopc.kafka.source import KafkaSource
from twopc.kafka.topic_partition import TopicPartition
from twopc.protocol.facts import SplitPosition
from twopc.protocol.ids import AttemptId, CheckpointId, SubtaskIndex
from twopc.serde import Json
from twopc.source import SourceReader, Split
from twopc.testing.topics import Write, create_topic, delete_topic, produce

pytestmark = [pytest.mark.broker, pytest.mark.usefixtures("record_path")]

Restored = dict[str, SplitPosition]


def at(split: Split, offset: int) -> SplitPosition:
    """Where a reader of this split stands when it has come to an offset."""
    return SplitPosition(split.id, split.partition, [offset, PartitionSplit.from_split(split).topic_id])


class Reading:
    """Plans and reads one source by hand."""

    def __init__(self, servers: str, job: str) -> None:
        self.servers = servers
        self.context = JobContext(job, AttemptId(1), 1, settings(servers))
        self._readers: list[SourceReader] = []

    def plan(self, source: KafkaSource, restored: Restored | None = None, bounded: bool = True) -> list[Split]:
        return source.open_planner(self.context).plan(restored or {}, bounded)

    def open(self, source: KafkaSource, splits: list[Split]) -> SourceReader:
        context = self.context
        subtask = SubtaskContext(context.job, context.attempt, context.parallelism, context.settings, SubtaskIndex(0))
        reader = source.open_reader(subtask, splits)
        self._readers.append(reader)
        return reader

    def all_values(self, source: KafkaSource, restored: Restored | None = None) -> list[Any]:
        """Read to the ends that are there now."""
        return drain(self.open(source, self.plan(source, restored)))

    def await_end(self, source: KafkaSource, end: int) -> None:
        """Wait until a bounded read would go so far: a broker answers EndTxn before it has written the markers."""
        eventually(lambda: all(split.stop[0] >= end for split in self.plan(source)))

    def close(self) -> None:
        for reader in self._readers:
            reader.close()


def read_up_to(reader: SourceReader, count: int, turns: int = 600) -> list[Any]:
    """Return what arrives until there are so many values: more only where they came in one batch."""
    values: list[Any] = []
    for _ in range(turns):
        batch = reader.poll(0.1, 1000)
        values += [] if batch is None else batch.values
        if len(values) >= count:
            break
    return values


@pytest.fixture
def reading(servers: str, job: str) -> Iterator[Reading]:
    found = Reading(servers, job)
    yield found
    found.close()


@pytest.fixture
def three(servers: str, new_topic: Callable[..., str]) -> str:
    """Return a topic with one partition of three records, at 1,000, 2,000 and 3,000 ms."""
    topic = new_topic()
    produce(
        servers,
        topic,
        [Write(value, timestamp=stamp) for value, stamp in ((b"a", 1_000), (b"b", 2_000), (b"c", 3_000))],
    )
    return topic


@pytest.mark.parametrize(
    ("start", "expected"),
    [
        (StartingOffsets.group_offsets(), [b"a", b"b", b"c"]),
        (StartingOffsets.earliest(), [b"a", b"b", b"c"]),
        (StartingOffsets.latest(), []),
        (StartingOffsets.timestamp(2_000), [b"b", b"c"]),
        (StartingOffsets.timestamp(2_001), [b"c"]),
        (StartingOffsets.timestamp(9_000), []),
    ],
)
def test_each_startup_mode_begins_where_it_says(
    reading: Reading, three: str, start: Any, expected: list[bytes]
) -> None:
    assert reading.all_values(KafkaSource(three, start=start)) == expected


def test_specific_offsets_begin_there_and_at_the_earliest_where_none_is_named(
    reading: Reading, three: str, servers: str, new_topic: Callable[..., str]
) -> None:
    other = new_topic()
    produce(servers, other, [b"x"])
    source = KafkaSource([three, other], start=StartingOffsets.specific({(three, 0): 2}))
    assert sorted(reading.all_values(source)) == [b"c", b"x"]


def test_group_offsets_begin_where_the_group_stands(reading: Reading, three: str, servers: str) -> None:
    source = KafkaSource(three)
    reader = reading.open(source, reading.plan(source))
    topic_id = _commit(reading, reader, three, 2)
    with ControlClient(servers, {}) as client:
        assert _held(client, reading, three) == (2, f"checkpoint=4 topic={topic_id} attempt=1")
    assert reading.all_values(KafkaSource(three)) == [b"c"]


def test_group_offsets_of_a_topic_that_is_gone_are_not_where_the_new_one_begins(
    reading: Reading, three: str, caplog: pytest.LogCaptureFixture
) -> None:
    _stand_at(reading, three, 2, "checkpoint=4 topic=another")
    assert reading.all_values(KafkaSource(three)) == [b"a", b"b", b"c"]
    [said] = [record.getMessage() for record in caplog.records if "deleted and created again" in record.getMessage()]
    assert three in said
    assert "the first record" in said


@pytest.mark.parametrize("metadata", ["", "checkpoint=4", "of another program"])
def test_group_offsets_that_name_no_topic_are_begun_at(reading: Reading, three: str, metadata: str) -> None:
    _stand_at(reading, three, 2, metadata)
    assert reading.all_values(KafkaSource(three)) == [b"c"]


def _stand_at(reading: Reading, topic: str, position: int, metadata: str) -> None:
    """Have the group stand there as by another run, which may have read another topic of that name."""
    consumer = Consumer({"bootstrap.servers": reading.servers, "group.id": reading.context.job})
    consumer.commit(offsets=[Target(topic, 0, position, metadata)], asynchronous=False)
    consumer.close()


def _commit(reading: Reading, reader: SourceReader, topic: str, position: int) -> str:
    """Have the group stand there as by checkpoint 4; return the topic's id."""
    [split] = reading.plan(KafkaSource(topic))
    reader.commit_positions(CheckpointId(4), [at(split, position)])
    with ControlClient(reading.servers, {}) as client:
        eventually(lambda: _held(client, reading, topic) is not None)
    return PartitionSplit.from_split(split).topic_id


def _held(client: ControlClient, reading: Reading, topic: str) -> tuple[int, str] | None:
    where = TopicPartition(topic, 0)
    held = client.group_offsets(reading.context.job, [where])
    return (held[where].position, held[where].metadata) if where in held else None


def test_a_restored_position_outweighs_the_startup_mode(reading: Reading, three: str) -> None:
    [split] = reading.plan(KafkaSource(three))
    restored = {split.id: at(split, 1)}
    assert reading.all_values(KafkaSource(three, start=StartingOffsets.latest()), restored) == [b"b", b"c"]


def test_a_partition_added_since_the_checkpoint_is_read_from_its_first_record(
    reading: Reading, servers: str, new_topic: Callable[..., str]
) -> None:
    topic = new_topic(2)
    produce(servers, topic, [Write(b"old", partition=0), Write(b"new", partition=1)])
    first, _ = reading.plan(KafkaSource(topic))
    restored = {first.id: at(first, 1)}
    assert reading.all_values(KafkaSource(topic, start=StartingOffsets.latest()), restored) == [b"new"]


def test_a_bounded_read_of_a_transactional_topic_ends_beyond_the_last_marker(
    reading: Reading, driven: DrivenSink, out: str
) -> None:
    driven.write(b"a")
    driven.commit(driven.pre_commit(1))
    driven.write(b"aborted")
    driven.writer._txn.slot.producer.flush(60)
    driven.writer.abort()
    driven.writer.begin()
    source = KafkaSource(out)
    reading.await_end(source, 4)
    reader = reading.open(source, reading.plan(source))
    assert drain(reader) == [b"a"]
    [position] = reader.positions()
    assert position.position[0] == 4  # a, its commit marker, what was aborted, its marker


def test_a_bounded_read_does_not_wait_for_what_an_open_transaction_hides(
    reading: Reading, driven: DrivenSink, out: str
) -> None:
    driven.write(b"committed")
    driven.commit(driven.pre_commit(1))
    driven.write(b"pre-committed")
    driven.pre_commit(2)
    reading.await_end(KafkaSource(out), 1)
    assert reading.all_values(KafkaSource(out)) == [b"committed"]


def test_a_bounded_read_ends_where_what_was_aborted_stands_right_before_an_open_transaction(
    reading: Reading, driven: DrivenSink, out: str
) -> None:
    source = KafkaSource(out)
    driven.write(b"committed")
    driven.commit(driven.pre_commit(1))
    # Its marker, too: behind what follows, the open transaction would begin an offset earlier.
    reading.await_end(source, 2)
    driven.write(b"aborted")
    driven.writer._txn.slot.producer.flush(60)
    aborted = driven.writer._txn
    driven.writer.begin()
    driven.write(b"open")
    driven.writer._txn.slot.producer.flush(60)
    driven.writer._txn = aborted
    driven.writer.abort()
    reading.await_end(source, 3)
    assert reading.all_values(source) == [b"committed"]


def test_what_arrives_after_the_plan_is_left_to_the_next_run(
    reading: Reading, servers: str, new_topic: Callable[..., str]
) -> None:
    topic = new_topic(2)
    source = KafkaSource(topic)
    produce(servers, topic, [Write(b"%d" % number, partition=number % 2) for number in range(10)])
    splits = reading.plan(source)
    produce(servers, topic, [Write(b"later", partition=number % 2) for number in range(5_000)])
    reader = reading.open(source, splits)
    assert sorted(drain(reader)) == [b"%d" % number for number in range(10)]
    assert list(offsets_of(reader.positions()).values()) == [5, 5]
    restored = {item.split: item for item in reader.positions()}
    assert reading.all_values(source, restored) == [b"later"] * 5_000


def test_positions_before_the_first_poll_are_the_starts(reading: Reading, three: str) -> None:
    source = KafkaSource(three, start=StartingOffsets.specific({(three, 0): 1}))
    reader = reading.open(source, reading.plan(source, bounded=False))
    assert list(offsets_of(reader.positions()).values()) == [1]


def test_an_unbounded_read_goes_on_and_reports_its_lag(reading: Reading, three: str, servers: str) -> None:
    source = KafkaSource(three)
    reader = reading.open(source, reading.plan(source, bounded=False))
    assert read_up_to(reader, 3) == [b"a", b"b", b"c"]
    produce(servers, three, [b"d"])
    assert read_up_to(reader, 1) == [b"d"]
    assert not reader.finished()
    assert (reader.lag(), reader.split_lags()) == (0, {f"{three}[0]": 0})


def test_a_reader_counts_the_bytes_of_the_values_that_it_hands_over(
    reading: Reading, servers: str, new_topic: Callable[..., str]
) -> None:
    topic = new_topic()
    produce(servers, topic, [Write(b"four", key=b"key"), Write(None, key=b"k"), b"1"])
    source = KafkaSource(topic)
    reader = reading.open(source, reading.plan(source))
    assert reader.bytes_read() == 0
    drain(reader)
    assert reader.bytes_read() == 5


def test_a_reader_without_splits_is_finished_at_once(reading: Reading, three: str) -> None:
    reader = reading.open(KafkaSource(three), [])
    assert reader.finished()
    assert (reader.poll(0, 1000), reader.positions(), reader.lag()) == (None, (), 0)


def test_keys_and_values_are_decoded(reading: Reading, servers: str, new_topic: Callable[..., str]) -> None:
    topic = new_topic()
    produce(servers, topic, [Write(b'{"n": 1}', key=b'"k"'), Write(None)])
    source = KafkaSource(topic, key=Json(), value=Json())
    reader = reading.open(source, reading.plan(source))
    decoded: list[tuple[Any, Any]] = []
    while not reader.finished():
        batch = reader.poll(0.1, 1000)
        decoded += [] if batch is None else zip(batch.keys, batch.values, strict=True)
    assert decoded == [("k", {"n": 1}), (None, None)]


def test_a_value_that_cannot_be_decoded_is_named_and_those_beside_it_are_read(
    reading: Reading, servers: str, new_topic: Callable[..., str]
) -> None:
    topic = new_topic()
    produce(servers, topic, [b"1", b"no JSON", b"3"])
    source = KafkaSource(topic, value=Json())
    reader = reading.open(source, reading.plan(source))
    values: list[Any] = []
    errors: list[str] = []
    while not reader.finished():
        batch = reader.poll(0.1, 1000)
        if batch is not None:
            values += batch.values
            errors += [str(error.named()) for _, error in batch.errors]
    assert values == [1, 3]
    [error] = errors
    assert error.startswith(f"record {topic}[0]@1: decoding the value")


def test_a_missing_input_topic_is_named(reading: Reading) -> None:
    with pytest.raises(ConfigurationError, match=r"input topic 'nowhere' isn't there: create it \(twopc topics create"):
        reading.plan(KafkaSource("nowhere"))


def test_a_recreated_input_topic_is_refused(reading: Reading, three: str, servers: str) -> None:
    [split] = reading.plan(KafkaSource(three))
    restored = {split.id: at(split, 0)}
    delete_topic(servers, three)
    create_topic(servers, three)
    with pytest.raises(ConfigurationError, match=f"{three}' was deleted and created again"):
        reading.plan(KafkaSource(three), restored)


def test_a_position_beyond_the_end_is_refused(reading: Reading, three: str) -> None:
    with pytest.raises(ConfigurationError, match="read from offset 9, but it ends at 3"):
        reading.plan(KafkaSource(three, start=StartingOffsets.specific({(three, 0): 9})))


def test_a_position_that_retention_has_deleted_is_refused(reading: Reading, three: str, servers: str) -> None:
    admin = AdminClient({"bootstrap.servers": servers})
    for done in admin.delete_records([Target(three, 0, 2)]).values():
        done.result(60)
    with pytest.raises(ConfigurationError, match="read from offset 1, but its first record is at 2") as caught:
        reading.plan(KafkaSource(three, start=StartingOffsets.specific({(three, 0): 1})))
    assert str(caught.value).endswith(f"--accept-gap {three}[0]@1-2")
