"""What the compiled part writes is what confluent-kafka writes, and what it does not take confluent-kafka is asked."""

from __future__ import annotations

from collections.abc import Callable
from itertools import repeat
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException, Producer
from hypothesis import HealthCheck, given, settings

from tests.kafka.native.kit import RECORDS, by_objects
from twopc.errors import TwoPhaseCommitError
from twopc.kafka import native
from twopc.kafka.clients.client_config import producer_config, transactional_config
from twopc.kafka.output.handover import ClientColumns, ColumnHandover, Handover, RecordHandover, handover
from twopc.kafka.output.tracked_producer import TrackedProducer

NewTopic = Callable[[], str]


def columns_of(records: list[tuple[Any, ...]]) -> ClientColumns:
    """Of (value, key, timestamp, partition, headers) each."""
    values, keys, stamps, partitions, headers = ([record[index] for record in records] for index in range(5))
    return ClientColumns(keys, values, partitions, stamps, headers)


def values_only(*values: Any) -> ClientColumns:
    return columns_of([(value, None, 1, 0, None) for value in values])


def tracked(servers: str, **changes: Any) -> TrackedProducer:
    return TrackedProducer(producer_config(servers, {}) | {"log_level": 0} | changes)


def finish(producer: TrackedProducer, way: Handover) -> None:
    way.proceed()
    assert producer.flush(30) == 0


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(records=RECORDS)
def test_any_records_are_written_alike_in_both_ways(
    mock_servers: str, new_topic: NewTopic, compiled: Any, records: list[tuple[Any, ...]]
) -> None:
    producer, columns = tracked(mock_servers), columns_of(records)
    assert producer.writer is not None
    topics = new_topic(), new_topic()
    for topic in topics:
        producer.know(topic)
    finish(producer, RecordHandover(producer, topics[0], columns))
    finish(producer, ColumnHandover(producer, producer.writer, topics[1], columns))
    (one, _), (other, _) = (by_objects(mock_servers, topic) for topic in topics)
    assert {at: row[1:] for at, row in one.items()} == {at: row[1:] for at, row in other.items()}
    assert len(one) == len(records)


def test_text_and_no_timestamp_and_no_partition_are_written_as_ever(
    mock_servers: str, new_topic: NewTopic, compiled: Any
) -> None:
    producer, topic = tracked(mock_servers), new_topic()
    producer.know(topic)
    made = ClientColumns(["schlüssel", None], ["wért", b""], repeat(-1), [-1, 5], [(("name", "näm"),), []])
    finish(producer, handover(producer, topic, made))
    found, _ = by_objects(mock_servers, topic)
    assert sorted((row[2], row[1], row[3][1], row[4]) for row in found.values()) == [
        (b"", None, 5, None),
        ("wért".encode(), "schlüssel".encode(), -1, [("name", "näm".encode())]),
    ]


@pytest.mark.parametrize(
    ("record", "raised"),
    [
        ((7, None, 1, 0, None), TypeError),
        ((b"v", 7.5, 1, 0, None), TypeError),
        (("\ud800", None, 1, 0, None), UnicodeEncodeError),
        ((b"v", None, 2**70, 0, None), OverflowError),
        ((b"v", None, 1, 2**40, None), OverflowError),
        ((b"v", None, 1, 0, [("nul\0", b"")]), ValueError),
        ((b"v", None, 1, 0, [("name", 7)]), TypeError),
        ((b"v", None, 1, 77, None), KafkaException),
        ((b"x" * 2_000_000, None, 1, 0, None), KafkaException),
    ],
)
def test_a_record_that_can_not_be_written_is_in_hand_when_the_client_says_so_and_the_others_are_written_once(
    mock_servers: str, new_topic: NewTopic, compiled: Any, record: tuple[Any, ...], raised: type[Exception]
) -> None:
    producer, topic = tracked(mock_servers), new_topic()
    producer.know(topic)
    good = [(b"%d" % index, None, 1, 0, None) for index in range(4)]
    way = handover(producer, topic, columns_of([*good[:2], record, *good[2:]]))
    assert isinstance(way, ColumnHandover)
    with pytest.raises(raised):
        way.proceed()
    assert way.index == 2
    finish(producer, way)
    found, _ = by_objects(mock_servers, topic)
    assert [found[at][2] for at in sorted(found)] == [b"0", b"1", b"2", b"3"]


def test_a_full_queue_is_waited_for_and_the_order_stays(mock_servers: str, new_topic: NewTopic, compiled: Any) -> None:
    limits = {"queue.buffering.max.messages": 10, "batch.num.messages": 10}
    producer, topic = tracked(mock_servers, **limits), new_topic()
    producer.know(topic)
    values = [b"%d" % index for index in range(500)]
    finish(producer, handover(producer, topic, values_only(*values)))
    found, _ = by_objects(mock_servers, topic)
    assert [found[at][2] for at in sorted(found)] == values


def test_a_record_that_is_not_delivered_is_reported_with_what_it_was(compiled: Any) -> None:
    producer = tracked("127.0.0.1:1", **{"message.timeout.ms": 10})
    handover(producer, "topic", columns_of([(b"value", b"key", 1, 0, None)])).proceed()
    with pytest.raises(TwoPhaseCommitError, match="delivering a record to topic"):
        producer.flush(30)
    (failed,) = producer.deliveries._undelivered
    assert (failed.error, failed.topic, failed.key, failed.value) == (
        KafkaError(KafkaError._MSG_TIMED_OUT),
        "topic",
        b"key",
        b"value",
    )


def test_a_failure_of_a_transaction_before_is_forgotten(compiled: Any) -> None:
    producer = tracked("127.0.0.1:1", **{"message.timeout.ms": 10})
    handover(producer, "topic", values_only(b"value")).proceed()
    producer.client.flush(30)
    producer.reset()
    producer.poll(0)


def test_no_more_failures_are_kept_than_were_asked_for(mock_servers: str, compiled: Any) -> None:
    writer = compiled.Writer(3)
    config = producer_config("127.0.0.1:1", {}) | {"log_level": 0, "message.timeout.ms": 10}
    producer = Producer(config | native.settings_for(writer.number))
    assert writer.write("topic", [b"value"] * 5, [None] * 5, [1] * 5, None, None, 0) == 5
    assert producer.flush(30) == 0
    assert len(writer.take_failures()) == 3
    assert writer.take_failures() == []


def test_without_a_transaction_a_transactional_producer_takes_nothing_and_says_so(
    mock_servers: str, new_topic: NewTopic, compiled: Any
) -> None:
    config = transactional_config(producer_config(mock_servers, {}), "some-id", 60_000) | {"log_level": 0}
    producer, topic = TrackedProducer(config), new_topic()
    producer.client.init_transactions(30)
    producer.know(topic)
    way = handover(producer, topic, values_only(b"value"))
    with pytest.raises(KafkaException) as raised:
        way.proceed()
    assert raised.value.args[0].code() == KafkaError._STATE


def test_a_transaction_that_is_committed_has_all_of_it(mock_servers: str, new_topic: NewTopic, compiled: Any) -> None:
    config = transactional_config(producer_config(mock_servers, {}), "another-id", 60_000) | {"log_level": 0}
    producer, topic = TrackedProducer(config), new_topic()
    producer.client.init_transactions(30)
    producer.know(topic)
    producer.client.begin_transaction()
    finish(producer, handover(producer, topic, values_only(*(b"%d" % index for index in range(100)))))
    producer.client.commit_transaction(30)
    found, _ = by_objects(mock_servers, topic)
    assert [found[at][2] for at in sorted(found)] == [b"%d" % index for index in range(100)]


def test_nothing_is_written_by_a_writer_that_no_producer_has_joined(compiled: Any) -> None:
    assert compiled.Writer(1).write("topic", [b"value"], [None], [1], None, None, 0) == 0


@pytest.mark.parametrize(
    "arguments",
    [
        (["v"], [], [1], None, None, 0),
        (["v"], [None], [1], [], None, 0),
        (("v",), [None], [1], None, None, 0),
        (["v"], [None], [1], None, None, -1),
    ],
)
def test_columns_that_do_not_fit_are_refused(compiled: Any, arguments: tuple[Any, ...]) -> None:
    with pytest.raises(ValueError, match="must be"):
        compiled.Writer(1).write("topic", *arguments)
