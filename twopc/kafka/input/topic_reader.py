"""Topics as any reader sees them, who is no job: up to an end, or for as long as somebody looks.

Nothing is joined and nothing committed: no group sees that a topic was read.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping
from contextlib import closing
from functools import partial
from typing import Any, TypeVar

from confluent_kafka import Consumer, KafkaException
from confluent_kafka import TopicPartition as ClientPartition

from twopc.errors import ConfigurationError, Unavailable
from twopc.kafka.clients.client_config import consumer_config
from twopc.kafka.clients.cluster import Cluster
from twopc.kafka.clients.control_client import EARLIEST, LATEST, ControlClient, TopicInfo
from twopc.kafka.input.marker_wait import await_markers
from twopc.kafka.input.reader import KafkaReader
from twopc.kafka.positions.partition_position import PartitionSplit
from twopc.kafka.topic_partition import Position, TopicPartition
from twopc.record import Batch
from twopc.serde import Bytes, Serde

GROUP = "twopc-reader"
BATCH = 2_000
POLL_SECONDS = 1.0
ANSWER_SECONDS = 30.0
STALL_SECONDS = 60.0
MARKER_SECONDS = 30.0

_Polled = TypeVar("_Polled")

Ranges = Mapping[TopicPartition, tuple[Position, Position]]
"""Of each partition, the first offset to read and the one to stop before."""


def whole(cluster: Cluster, topics: Iterable[str], *, committed: bool = True) -> Ranges:
    """Return where each partition begins and ends now; raise ConfigurationError if a topic is not there.

    A reader of what is committed ends at the last stable offset: what an open transaction hides is not waited for, the
    markers of what was committed or aborted before are.
    """
    with cluster.client() as client:
        known = client.topics(names := list(dict.fromkeys(topics)))
        if missing := [name for name in names if name not in known]:
            raise ConfigurationError(f"there is no topic {', '.join(map(repr, missing))} at {cluster.servers}")
        if committed:
            await_markers(client, MARKER_SECONDS)
        ranges = ranges_of(client, known)
    if committed:
        return ranges
    highs = high_watermarks(cluster, ranges)
    return {partition: (first, highs[partition]) for partition, (first, _) in ranges.items()}


def ranges_of(client: ControlClient, topics: Mapping[str, TopicInfo]) -> Ranges:
    """Return where each partition of these topics begins, and where it ends for a read_committed reader."""
    partitions = [TopicPartition(name, number) for name, topic in topics.items() for number in range(topic.partitions)]
    firsts = client.offsets(dict.fromkeys(partitions, EARLIEST))
    ends = client.offsets(dict.fromkeys(partitions, LATEST))
    return {partition: (firsts[partition], ends[partition]) for partition in partitions}


def high_watermarks(cluster: Cluster, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, Position]:
    """Return where each partition ends for a reader of what is not committed too."""
    consumer = Consumer(_config(cluster, committed=False))
    try:
        return {partition: _high(consumer, partition) for partition in partitions}
    finally:
        consumer.close()


def read(
    cluster: Cluster,
    ranges: Ranges,
    *,
    key: Serde | None = None,
    value: Serde | None = None,
    committed: bool = True,
    stall_seconds: float = STALL_SECONDS,
    kind: type[KafkaReader] | None = None,
) -> Iterator[Batch]:
    """Yield the records of these ranges, decoded, each partition in its order; raise Unavailable if none come."""
    with closing(open_reader(cluster, ranges, key=key, value=value, committed=committed, kind=kind)) as reader:
        poll = partial(reader.poll, POLL_SECONDS, BATCH)
        yield from until_done(poll, reader.finished, [reader], cluster.servers, stall_seconds)


def open_reader(
    cluster: Cluster,
    ranges: Ranges,
    *,
    key: Serde | None = None,
    value: Serde | None = None,
    committed: bool = True,
    kind: type[KafkaReader] | None = None,
) -> KafkaReader:
    """Return a reader of these ranges, of this kind where one is given."""
    splits = [PartitionSplit(partition, "", first, end) for partition, (first, end) in ranges.items()]
    return (kind or KafkaReader)(_config(cluster, committed), key or Bytes(), value or Bytes(), splits)


def until_done(
    poll: Callable[[], _Polled | None],
    is_done: Callable[[], bool],
    readers: Collection[KafkaReader],
    where: str,
    stall_seconds: float = STALL_SECONDS,
) -> Iterator[_Polled]:
    """Yield what `poll` returns until all is read; raise Unavailable where nothing comes for so long."""
    since = time.monotonic()
    while not is_done():
        polled = poll()
        if polled is not None:
            yield polled
            since = time.monotonic()
        elif time.monotonic() - since > stall_seconds:
            stands = ", ".join(str(position) for reader in readers for position in reader.positions())
            raise Unavailable(
                f"nothing more came from {where} for {stall_seconds:.0f} s, short of the end; read so far: {stands}"
            )


def follow(
    cluster: Cluster,
    starts: Mapping[TopicPartition, Position],
    *,
    committed: bool = True,
    poll_seconds: float = POLL_SECONDS,
) -> Generator[Batch | None]:
    """Yield what comes from these offsets on, for ever; None where nothing came for a moment. Close it to end it."""
    splits = [PartitionSplit(partition, "", start, None) for partition, start in starts.items()]
    reader = KafkaReader(_config(cluster, committed), Bytes(), Bytes(), splits)
    try:
        while True:
            yield reader.poll(poll_seconds, BATCH)
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
