"""A sample of the keys of topics, and by which of Kafka's partitioners they were written.

The first records of each partition are read, as any reader reads them. A record without a key says nothing: it goes to
any partition. librdkafka's partitioners are those of rd_kafka_msg_partitioner_*; murmur2 is Java's, too.
"""

from __future__ import annotations

import zlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from math import log2

from twopc.column_rows import partitions_of
from twopc.kafka.clients.cluster import Cluster
from twopc.kafka.clients.control_client import LATEST
from twopc.kafka.input.topic_reader import Ranges, read
from twopc.kafka.positions.partition_position import PartitionSplit
from twopc.kafka.topic_partition import Position, TopicPartition
from twopc.kafka.topics.partitioner import partition_for
from twopc.key_spread import KeySample

MOST_RECORDS = 1_000
LEAST_RECORDS = 20
"""A sample of a topic has about so many records at most, and of each partition at least so many, if they are there."""

STALL_SECONDS = 10.0

SURE_BITS = 20.0
"""Keys that fit a way by chance do so once in a million samples."""

_FNV_OFFSET, _FNV_PRIME = 0x811C9DC5, 0x01000193


def sampled(cluster: Cluster, splits: Iterable[PartitionSplit]) -> list[KeySample]:
    """Return a sample of each topic that has several partitions; raise Unavailable where they can't be read."""
    starts: dict[str, dict[TopicPartition, Position]] = defaultdict(dict)
    for split in splits:
        starts[split.partition.topic][split.partition] = split.start
    several = {topic: own for topic, own in sorted(starts.items()) if len(own) > 1}
    if not several:
        return []
    with cluster.client() as client:
        ends = client.offsets({partition: LATEST for own in several.values() for partition in own})
    ranges = {topic: _ranges(own, ends) for topic, own in several.items()}
    found = _keys(cluster, {partition: range_ for own in ranges.values() for partition, range_ in own.items()})
    return [_sample(topic, found[topic], own) for topic, own in ranges.items()]


def ways_of(places: Mapping[bytes, frozenset[int]], partitions: int) -> frozenset[str]:
    """Return the ways of choosing one of so many partitions that all keys fit; none where they are too few to say."""
    if len(places) * log2(partitions) < SURE_BITS:
        return frozenset()
    return frozenset(
        name
        for name, choose in _WAYS.items()
        if all(numbers == {choose(key, partitions)} for key, numbers in places.items())
    )


def _share(partitions: int) -> int:
    return max(LEAST_RECORDS, MOST_RECORDS // partitions)


def _ranges(starts: Mapping[TopicPartition, Position], ends: Mapping[TopicPartition, Position]) -> Ranges:
    share = _share(len(starts))
    return {
        partition: (start, Position(min(start + share, max(start, ends[partition]))))
        for partition, start in starts.items()
    }


def _sample(topic: str, places: Mapping[bytes, frozenset[int]], ranges: Ranges) -> KeySample:
    ways = ways_of(places, len(ranges))
    full = all(end - first == _share(len(ranges)) for first, end in ranges.values())
    return KeySample(topic, places, ways, whole=full or bool(ways))


def _keys(cluster: Cluster, ranges: Ranges) -> dict[str, dict[bytes, frozenset[int]]]:
    found: dict[str, dict[bytes, frozenset[int]]] = defaultdict(dict)
    for batch in read(cluster, ranges, stall_seconds=STALL_SECONDS):
        topics = [str(row.topic()) for row in batch.rows]
        for topic, number, key in zip(topics, partitions_of(batch.rows), batch.keys, strict=True):
            if key:
                found[topic][key] = found[topic].get(key, frozenset()) | {number}
    return found


def _crc32(key: bytes, partitions: int) -> int:
    return zlib.crc32(key) % partitions


def _fnv1a(key: bytes, partitions: int) -> int:
    """Return what Sarama's clients do, and librdkafka by fnv1a: the hash is a signed number, taken without its sign."""
    value = _FNV_OFFSET
    for byte in key:
        value = ((value ^ byte) * _FNV_PRIME) & 0xFFFFFFFF
    return (value if value < 1 << 31 else (1 << 32) - value) % partitions


_WAYS: Mapping[str, Callable[[bytes, int], int]] = {
    "murmur2 (Java's clients)": partition_for,
    "crc32 (librdkafka's default)": _crc32,
    "fnv1a (Sarama)": _fnv1a,
}
