"""Records at random, and both ways to read and write them."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from confluent_kafka import Consumer, Producer
from confluent_kafka import TopicPartition as ClientPartition
from hypothesis import strategies as st

from tests.kafka.native.conftest import PARTITIONS
from twopc.kafka.clients.client_config import consumer_config
from twopc.kafka.input.fetching import ColumnFetching, Fetching, MessageFetching
from twopc.kafka.topic_partition import TopicPartition

PAYLOADS = st.none() | st.binary(max_size=40)
NAMES = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=8)
HEADERS = st.none() | st.lists(st.tuples(NAMES, PAYLOADS), min_size=1, max_size=3)
STAMPS = st.integers(min_value=1, max_value=2**42)
RECORDS = st.lists(st.tuples(PAYLOADS, PAYLOADS, STAMPS, st.integers(0, PARTITIONS - 1), HEADERS), max_size=60)
"""Value, key, timestamp, partition and headers of each."""

PATIENCE_SECONDS = 100
"""How long reading a topic to its ends may take."""

Seen = dict[tuple[int, int], tuple[Any, ...]]
"""By partition and offset: topic, key, value, timestamp and headers."""


def write(servers: str, topic: str, records: Sequence[tuple[Any, ...]]) -> None:
    """Write by confluent-kafka, those of a partition together."""
    producer = Producer({"bootstrap.servers": servers, "log_level": 0, "linger.ms": 60_000})
    for value, key, stamp, partition, headers in records:
        producer.produce(topic, value, key, partition, None, None, stamp, headers)
    assert producer.flush(30) == 0


class Reading:
    """One consumer that reads a topic, from one offset of each partition on, in one of the two ways. Close it."""

    def __init__(self, servers: str, topic: str, fetching: Fetching, first: int = 0, **changes: Any) -> None:
        self.topic = topic
        self.fetching = fetching
        self.ended: set[int] = set()
        self.errors: list[Any] = []
        config = consumer_config(servers, "group", {}) | fetching.settings | {"log_level": 0} | changes
        self.consumer = Consumer(config)
        self.fetching.start(self.consumer, [TopicPartition(topic, number) for number in range(PARTITIONS)])
        self.consumer.assign([ClientPartition(topic, number, first) for number in range(PARTITIONS)])

    def batches(self, most: int = 50) -> list[Any]:
        """Read to the ends; return the rows of each batch."""
        found = []
        deadline = time.monotonic() + PATIENCE_SECONDS
        while len(self.ended) < PARTITIONS:
            assert time.monotonic() < deadline, f"only {self.ended} of {PARTITIONS} partitions ended: {self.errors}"
            rows, errors = self.fetching.take(most, 0.05)
            self.ended.update(error.partition.partition for error in errors)
            self.errors += errors
            if rows:
                found.append(rows)
        return found

    def positions(self) -> list[int]:
        """Return where the consumer stands."""
        asked = [ClientPartition(self.topic, number) for number in range(PARTITIONS)]
        return [each.offset for each in self.consumer.position(asked)]

    def close(self) -> None:
        """Let go of the consumer."""
        self.fetching.close()
        self.consumer.close()


def seen(rows: Sequence[Any]) -> Seen:
    """Return what each row says of itself."""
    return {
        (row.partition(), row.offset()): (row.topic(), row.key(), row.value(), row.timestamp(), row.headers())
        for row in rows
    }


def read_all(servers: str, topic: str, fetching: Fetching) -> tuple[Seen, list[int]]:
    """Read all of a topic; return the records, and where the consumer stands then."""
    reading = Reading(servers, topic, fetching)
    try:
        found: Seen = {}
        for rows in reading.batches():
            found |= seen(rows)
        return found, reading.positions()
    finally:
        reading.close()


def by_objects(servers: str, topic: str) -> tuple[Seen, list[int]]:
    return read_all(servers, topic, MessageFetching())


def by_columns(servers: str, topic: str, compiled: Any) -> tuple[Seen, list[int]]:
    return read_all(servers, topic, ColumnFetching(compiled.Reader()))
