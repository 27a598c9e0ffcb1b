"""What the compiled part reads is what confluent-kafka's messages say, of any record."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError
from hypothesis import HealthCheck, given, settings

from tests.kafka.native.conftest import PARTITIONS
from tests.kafka.native.kit import RECORDS, Reading, by_columns, by_objects, seen, write
from twopc.column_rows import headers_of, keys_of, partitions_of, places_of, take, timestamps_of
from twopc.kafka.input.fetching import ColumnFetching
from twopc.record import Batch

NewTopic = Callable[[], str]
EVERY_KIND = [
    (b"value", b"key", 1_000, 0, None),
    (None, None, 2_000, 0, [("a", b"1"), ("a", None), ("b", b"")]),
    (b"", b"", 3_000, 1, None),
    (b"\0\xff", "näm".encode(), 4_000, 2, [("näm", b"\0")]),
]


@pytest.fixture
def reading(mock_servers: str, new_topic: NewTopic, compiled: Any) -> Any:
    """Return a reader of a topic with a record of every kind."""
    topic = new_topic()
    write(mock_servers, topic, EVERY_KIND)
    made = Reading(mock_servers, topic, ColumnFetching(compiled.Reader()))
    yield made
    made.close()


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(records=RECORDS)
def test_any_records_are_read_alike_in_both_ways(
    mock_servers: str, new_topic: NewTopic, compiled: Any, records: list[tuple[Any, ...]]
) -> None:
    topic = new_topic()
    write(mock_servers, topic, records)
    found = by_columns(mock_servers, topic, compiled)
    assert found == by_objects(mock_servers, topic)
    assert len(found[0]) == len(records)


def test_the_columns_of_a_batch_are_what_its_rows_say(reading: Reading) -> None:
    for rows in reading.batches():
        each = list(rows)
        assert keys_of(rows) == [row.key() for row in each]
        assert rows.values() == [row.value() for row in each]
        assert rows.size() == sum(len(row.value() or b"") for row in each)
        assert rows[1:].size() == sum(len(row.value() or b"") for row in each[1:])
        assert headers_of(rows) == [row.headers() for row in each]
        assert partitions_of(rows) == [row.partition() for row in each]
        assert places_of(rows) == places_of(each)
        assert timestamps_of(rows) == timestamps_of(each)


def test_a_part_of_a_batch_has_the_same_rows_in_its_order(reading: Reading) -> None:
    rows = max(reading.batches(), key=len)
    assert list(rows[1:]) == list(rows)[1:]
    assert rows[-1] == list(rows)[-1]
    turned = take(rows, range(len(rows) - 1, -1, -1))
    assert seen(turned) == seen(rows)
    assert keys_of(turned) == keys_of(rows)[::-1]
    assert headers_of(turned[:1]) == [rows[-1].headers()]


def test_a_batch_makes_records_of_columns(reading: Reading) -> None:
    records = [record for rows in reading.batches() for record in Batch(rows, rows.values()).records()]
    assert sorted((record.partition, record.value or b"") for record in records) == [
        (0, b""),
        (0, b"value"),
        (1, b""),
        (2, b"\0\xff"),
    ]


def test_a_header_whose_name_is_no_utf8_is_an_error_of_its_record_alone(
    mock_servers: str, new_topic: NewTopic, compiled: Any
) -> None:
    topic = new_topic()
    write(mock_servers, topic, [(b"good", None, 1, 0, [("a", b"1")]), (b"torn", None, 1, 0, None)])
    reading = Reading(mock_servers, topic, ColumnFetching(compiled.Reader()))
    (rows,) = reading.batches()
    rows._records.headers[1] = [(b"\xff", b"1")]
    batch = Batch(rows, rows.values()).with_headers_read()
    reading.close()
    assert batch.values == [b"good"]
    assert batch.headers == [[("a", b"1")]]
    ((at, error),) = batch.errors
    assert (at, error.row.value()) == (1, b"torn")


def test_the_end_of_each_partition_is_said_with_its_offset(reading: Reading) -> None:
    reading.batches()
    ends = {error.partition.partition: error.offset for error in reading.errors}
    assert ends == {0: 2, 1: 1, 2: 1, 3: 0}
    assert {error.error.code() for error in reading.errors} == {KafkaError._PARTITION_EOF}


def test_an_offset_that_is_not_there_is_said_with_its_partition(
    mock_servers: str, new_topic: NewTopic, compiled: Any
) -> None:
    reading = Reading(mock_servers, new_topic(), ColumnFetching(compiled.Reader()), first=77)
    assert reading.batches() == []
    reading.close()
    assert {error.partition.partition for error in reading.errors} == set(range(PARTITIONS))
    assert {error.error.code() for error in reading.errors} == {KafkaError._AUTO_OFFSET_RESET}


@pytest.mark.parametrize("most", [1, 2])
def test_no_more_is_read_than_was_asked_for(reading: Reading, most: int) -> None:
    assert all(len(batch) <= most for batch in reading.batches(most))


def test_nothing_is_read_by_a_reader_that_was_closed(reading: Reading, compiled: Any) -> None:
    reader = compiled.Reader()
    with pytest.raises(RuntimeError, match="closed"):
        reader.read(1, 0, 0)
    reading.fetching._reader.close()  # type: ignore[attr-defined]
    with pytest.raises(RuntimeError, match="closed"):
        reading.fetching._reader.read(1, 0, 0)  # type: ignore[attr-defined]


def test_a_consumer_that_is_closed_first_takes_its_reader_along(reading: Reading) -> None:
    reading.consumer.close()
    with pytest.raises(RuntimeError, match="closed"):
        reading.fetching._reader.read(1, 0, 0)  # type: ignore[attr-defined]


def test_a_reader_follows_no_consumer_that_has_not_its_number(mock_servers: str, compiled: Any) -> None:
    stranger = Consumer({"bootstrap.servers": mock_servers, "group.id": "group", "log_level": 0})
    with pytest.raises(RuntimeError, match="no consumer has joined"):
        compiled.Reader().follow(stranger, [("topic", number) for number in range(PARTITIONS)])
    stranger.close()


@pytest.mark.parametrize("arguments", [(0, 0, 0), (1, -1, 0), (1, 0, -1), (2**40, 0, 0)])
def test_what_can_not_be_read_is_refused(compiled: Any, arguments: tuple[int, int, int]) -> None:
    with pytest.raises(ValueError, match="can be read"):
        compiled.Reader().read(*arguments)
