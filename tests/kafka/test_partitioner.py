"""Which partition of its topic a sink writes a record to."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.kafka.kit import DrivenSink, settings
from twopc import Job, KafkaSink, KafkaSource, Record
from twopc.context import JobContext
from twopc.errors import ConfigurationError, UserCodeError
from twopc.kafka.topics.partitioner import partition_for
from twopc.protocol.ids import AttemptId
from twopc.record import Batch, RecordsRefused
from twopc.source import Split
from twopc.testing import MemoryRun
from twopc.testing.rows import InputRow, batch_of
from twopc.testing.topics import read_topic


def by_length(record: Record, partitions: int) -> int:
    return len(record.value) % partitions


def partitioned(**options: Any) -> Job:
    """Return a job whose sink has these options."""
    job = Job("partitioned")
    job.source(KafkaSource("in")).map(bytes.upper).sink(KafkaSink("out", **options))
    return job


def written(*records: tuple[bytes, bytes | None, int], **options: Any) -> dict[bytes, int]:
    """Return the partition of each value that comes out of a job with four partitions."""
    with MemoryRun(partitioned(**options), partitions=4) as run:
        for value, key, partition in records:
            run.send("in", value, key, partition=partition)
        run.checkpoint()
        return {record.value: record.partition for record in run.read("out")}


@pytest.mark.parametrize("options", [{}, {"partitioner": "murmur2"}])
def test_a_key_goes_where_javas_clients_have_it(options: dict[str, str]) -> None:
    # The murmur2 of "foobar" is -790332482.
    assert written((b"a", b"foobar", 0), **options) == {b"A": (-790332482 & 0x7FFFFFFF) % 4}


def test_a_record_keeps_the_partition_that_it_was_read_from() -> None:
    records = [(b"%d" % number, b"key", number) for number in range(4)]
    assert written(*records, partitioner="source") == {b"0": 0, b"1": 1, b"2": 2, b"3": 3}


def test_a_function_of_the_record_and_the_number_of_partitions_says_where_it_goes() -> None:
    assert written((b"a", None, 0), (b"aaaaaa", None, 0), partitioner=by_length) == {b"A": 1, b"AAAAAA": 2}


def test_a_function_sees_the_record_as_it_comes_to_the_sink() -> None:
    def upper_first(record: Record, partitions: int) -> int:
        return 3 if record.value == b"A" and record.topic == "in" and partitions == 4 else 0

    assert written((b"a", None, 1), partitioner=upper_first) == {b"A": 3}


@pytest.mark.parametrize(
    ("result", "why"),
    [
        (4, r"ValueError: there is no partition 4: the topic has 4, from 0 to 3"),
        (-1, r"ValueError: there is no partition -1"),
        (None, r"TypeError: it must return the number of a partition, not None"),
        (True, r"TypeError: it must return the number of a partition, not True"),
    ],
)
def test_what_is_no_partition_is_an_error_that_names_the_record(result: Any, why: str) -> None:
    with pytest.raises(UserCodeError, match=rf"record in\[2\]@0: the sink's partitioner failed: {why}"):
        written((b"a", None, 2), partitioner=lambda record, partitions: result)


def test_a_partitioner_that_raises_is_an_error_that_names_the_record() -> None:
    with pytest.raises(UserCodeError, match=r"record in\[0\]@0: the sink's partitioner failed: ZeroDivisionError"):
        written((b"a", None, 0), partitioner=lambda record, partitions: 1 // 0)


@pytest.mark.parametrize("given", ["consistent", 3, ""])
def test_what_is_no_partitioner_is_refused_with_what_there_is(given: Any) -> None:
    with pytest.raises(ConfigurationError, match="'murmur2', 'source' or a function"):
        KafkaSink("out", partitioner=given)


def test_a_partitioner_beside_one_of_librdkafkas_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="another 'partitioner'"):
        KafkaSink("out", partitioner="murmur2", properties={"partitioner": "random"})


def test_a_description_names_the_partitioner() -> None:
    assert KafkaSink("out", partitioner=by_length).describe()["partitioner"] == "by_length"
    assert "partitioner" not in KafkaSink("out").describe()


def read_from(*partitions: int) -> Batch:
    """Return one record of each partition, whose value is its number."""
    return batch_of(InputRow(b"%d" % number, b"key", partition_=number) for number in partitions)


def partitions_in(servers: str, topic: str) -> dict[bytes | None, int]:
    return {record.value: record.partition for record in read_topic(servers, topic)}


@pytest.mark.broker
def test_on_brokers_a_key_goes_where_the_kit_says_it_does(
    servers: str, job: str, new_topic: Callable[..., str]
) -> None:
    out = new_topic(5)
    driven = DrivenSink(servers, job, out, input_topic=out)
    driven.start_attempt()
    keys = [b"key-%d" % number for number in range(50)]
    driven.writer.write(batch_of(InputRow(key, key) for key in keys))
    driven.commit(driven.pre_commit(1))
    driven.die()
    assert partitions_in(servers, out) == {key: partition_for(key, 5) for key in keys}


@pytest.mark.broker
def test_on_brokers_a_record_keeps_its_partition(servers: str, job: str, new_topic: Callable[..., str]) -> None:
    out = new_topic(5)
    driven = DrivenSink(servers, job, out, input_topic=out, partitioner="source")
    driven.start_attempt()
    driven.writer.write(read_from(4, 0, 2))
    driven.commit(driven.pre_commit(1))
    driven.die()
    assert partitions_in(servers, out) == {b"4": 4, b"0": 0, b"2": 2}


@pytest.mark.broker
def test_a_record_of_a_partition_that_the_output_lacks_is_named(
    servers: str, job: str, new_topic: Callable[..., str]
) -> None:
    out = new_topic(2)
    driven = DrivenSink(servers, job, out, input_topic=out, partitioner="source")
    driven.start_attempt()
    with pytest.raises(RecordsRefused, match=rf"\[2\]@0: output topic '{out}' has 2 partitions, .* input has 3"):
        driven.writer.write(read_from(1, 2))
    driven.commit(driven.pre_commit(1))
    driven.die()
    assert partitions_in(servers, out) == {b"1": 1}, "the other is written"


@pytest.mark.broker
def test_an_output_with_fewer_partitions_than_the_input_is_refused_before_a_record_is_read(
    servers: str, new_topic: Callable[..., str]
) -> None:
    out = new_topic(2)
    sink, context = KafkaSink(out, partitioner="source"), JobContext("job", AttemptId(1), 1, settings(servers))
    sink.check_splits(context, [Split("in/1", 1, 0, None)])
    with pytest.raises(ConfigurationError, match=f"output topic '{out}' has 2 partitions, .* the input has 3: give"):
        sink.check_splits(context, [Split("in/2", 2, 0, None)])
