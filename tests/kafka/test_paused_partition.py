"""A partition that is paused is left out, and read on from where it was: nothing is lost, and nothing read twice."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import closing

import pytest

from twopc.kafka.clients.cluster import Cluster
from twopc.kafka.input.reader import KafkaReader
from twopc.kafka.input.topic_reader import open_reader, whole
from twopc.testing.broker import Broker
from twopc.testing.topics import Write, create_topic, produce

pytestmark = pytest.mark.broker

RECORDS = 3_000


def read(reader: KafkaReader, seconds: float) -> dict[int, list[int]]:
    """Return the offsets of what comes until nothing does for so long, by partition."""
    found: dict[int, list[int]] = {0: [], 1: []}
    since = time.monotonic()
    while time.monotonic() - since < seconds and not reader.finished():
        if (batch := reader.poll(0.1, 100)) is not None:
            since = time.monotonic()
            for row in batch.rows:
                found[row.partition() or 0].append(row.offset() or 0)
    return found


def test_a_paused_partition_is_left_out_and_read_on_from_where_it_was(broker: Broker, topic: Callable[[], str]) -> None:
    name, cluster = topic(), Cluster(broker.bootstrap_servers)
    create_topic(broker.bootstrap_servers, name, 2)
    produce(broker.bootstrap_servers, name, [Write(b"%d" % n, partition=n % 2) for n in range(2 * RECORDS)])
    with closing(open_reader(cluster, whole(cluster, [name]))) as reader:
        first = reader.poll(10.0, 100)
        assert first is not None
        assert reader.pause(frozenset({f"{name}[0]"}))
        # What the client has handed out already may still come.
        while_paused = read(reader, 2.0)
        assert while_paused[1][-1] == RECORDS - 1
        assert len(while_paused[0]) < RECORDS - 100
        assert reader.pause(frozenset())
        rest = read(reader, 10.0)
    begun = [row.offset() for row in first.rows if row.partition() == 0]
    assert [*begun, *while_paused[0], *rest[0]] == list(range(RECORDS))
    assert rest[1] == []
