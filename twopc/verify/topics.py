"""Reads whole topics: from their first record to the end that they had when they were looked at.

Nothing is joined and nothing committed: no group sees that it was read.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from confluent_kafka import Consumer, KafkaException
from confluent_kafka import TopicPartition as ClientPartition

from twopc.errors import ConfigurationError, Unavailable
from twopc.kafka.client_config import admin_config, consumer_config
from twopc.kafka.reader import KafkaReader
from twopc.kafka.wire import EARLIEST, LATEST, ControlClient
from twopc.protocol.ids import Position, TopicPartition
from twopc.record import Batch
from twopc.serde import Bytes, Serde
from twopc.source import Split

GROUP = "twopc-verify"
BATCH = 2_000
ANSWER_SECONDS = 10.0
STALL_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Cluster:
    """Where the topics are, and how to get there; `properties` are librdkafka's, for a consumer."""

    servers: str
    properties: Mapping[str, Any] = field(default_factory=dict, repr=False)

    def client(self) -> ControlClient:
        return ControlClient(self.servers, admin_config(self.properties))


@dataclass(frozen=True, slots=True)
class Extent:
    """Where the records of topics begin and end, as a reader sees it, per partition.

    `log_ends` is where the log itself ended a moment later: what became of a record's transaction may stand beyond the
    last record that a read_committed reader sees.
    """

    firsts: Mapping[TopicPartition, Position]
    ends: Mapping[TopicPartition, Position]
    log_ends: Mapping[TopicPartition, Position] = field(default_factory=dict)

    @property
    def offsets(self) -> int:
        return sum(end - self.firsts[partition] for partition, end in self.ends.items())


def extent(client: ControlClient, topics: tuple[str, ...], role: str) -> Extent:
    """Return the extent now; raise ConfigurationError if a topic is missing, or doesn't begin at its beginning."""
    found = client.topics(topics)
    if missing := [topic for topic in topics if topic not in found]:
        raise ConfigurationError(f"there is no {role} topic {', '.join(map(repr, missing))}")
    partitions = [TopicPartition(name, number) for name in topics for number in range(found[name].partitions)]
    firsts = client.offsets(dict.fromkeys(partitions, EARLIEST))
    if gone := {partition: first for partition, first in firsts.items() if first > 0}:
        which = ", ".join(f"{partition} up to offset {first}" for partition, first in sorted(gone.items()))
        raise ConfigurationError(
            f"the beginning of the {role} is gone, deleted by retention or by hand: {which}. What was there can't be "
            "judged any more: verify while retention still has all of both topics"
        )
    return Extent(firsts, client.offsets(dict.fromkeys(partitions, LATEST)))


def high_watermarks(cluster: Cluster, extent: Extent) -> dict[TopicPartition, Position]:
    """Return where each partition ends for a read_uncommitted reader."""
    consumer = Consumer(_config(cluster, committed=False))
    try:
        return {partition: _high(consumer, partition) for partition in extent.ends}
    finally:
        consumer.close()


def read(
    cluster: Cluster, extent: Extent, *, key: Serde | None = None, value: Serde | None = None, committed: bool = True
) -> Iterator[Batch]:
    """Yield all records of the extent, decoded, each partition in its order."""
    splits = [Split(partition, "", extent.firsts[partition], end) for partition, end in extent.ends.items()]
    reader = KafkaReader(_config(cluster, committed), key or Bytes(), value or Bytes(), splits)
    try:
        since = time.monotonic()
        while not reader.finished():
            batch = reader.poll(1.0, BATCH)
            if batch is not None:
                yield batch
                since = time.monotonic()
            elif time.monotonic() - since > STALL_SECONDS:
                raise Unavailable(f"{cluster.servers} sent nothing for {STALL_SECONDS:.0f} s, short of the topic's end")
    finally:
        reader.close()


def _config(cluster: Cluster, committed: bool) -> dict[str, Any]:
    isolation = "read_committed" if committed else "read_uncommitted"
    return consumer_config(cluster.servers, GROUP, cluster.properties) | {"isolation.level": isolation}


def _high(consumer: Consumer, partition: TopicPartition) -> Position:
    try:
        _, high = consumer.get_watermark_offsets(ClientPartition(*partition), timeout=ANSWER_SECONDS)
    except KafkaException as error:
        raise Unavailable(f"the end of {partition} could not be asked for: {error}") from error
    return Position(high)
