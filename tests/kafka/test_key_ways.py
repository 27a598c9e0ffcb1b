"""By which partitioner a topic was written, found out from its first records."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from confluent_kafka import Producer

from twopc.kafka.clients.cluster import Cluster
from twopc.kafka.input.key_ways import sampled, ways_of
from twopc.kafka.positions.partition_position import PartitionSplit
from twopc.kafka.topic_partition import Position, TopicPartition
from twopc.testing.broker import Broker
from twopc.testing.topics import create_topic

PARTITIONS = 4
KEYS = [f"key-{number}".encode() for number in range(40)]


def test_too_few_keys_say_nothing_and_one_that_is_elsewhere_says_that_it_was_no_way_that_is_known() -> None:
    assert ways_of({KEYS[0]: frozenset([0])}, PARTITIONS) == frozenset()
    assert ways_of({key: frozenset([0]) for key in KEYS}, PARTITIONS) == frozenset()


def splits(name: str, start: int = 0) -> list[PartitionSplit]:
    return [PartitionSplit(TopicPartition(name, n), "", Position(start), None) for n in range(PARTITIONS)]


def write(broker: Broker, name: str, partitioner: str) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "partitioner": partitioner})
    for key in KEYS:
        producer.produce(name, b"value", key=key)
    producer.produce(name, b"without a key")
    assert producer.flush(30) == 0


@pytest.mark.broker
@pytest.mark.parametrize(("partitioner", "way"), [("murmur2", "murmur2"), ("consistent", "crc32"), ("fnv1a", "fnv1a")])
def test_what_librdkafka_writes_by_a_partitioner_of_its_own_is_told_by_its_keys(
    broker: Broker, topic: Callable[[], str], partitioner: str, way: str
) -> None:
    name = topic()
    create_topic(broker.bootstrap_servers, name, PARTITIONS)
    write(broker, name, f"{partitioner}_random")
    [sample] = sampled(Cluster(broker.bootstrap_servers), splits(name))
    assert sorted(sample.places) == sorted(KEYS)
    [found] = sample.ways
    assert found.startswith(way)
    assert sample.whole


@pytest.mark.broker
def test_a_sample_of_a_topic_without_records_is_not_whole_and_one_partition_keeps_all_keys_together(
    broker: Broker, topic: Callable[[], str]
) -> None:
    name = topic()
    create_topic(broker.bootstrap_servers, name, PARTITIONS)
    [sample] = sampled(Cluster(broker.bootstrap_servers), splits(name))
    assert (dict(sample.places), sample.whole) == ({}, False)
    assert sampled(Cluster(broker.bootstrap_servers), splits(name)[:1]) == []
