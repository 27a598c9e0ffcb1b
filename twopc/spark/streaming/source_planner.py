"""Plans the next batch of a query of Spark's by asking the brokers: the part of the source that runs in the driver.

Invariants:

- A batch ends at a last stable offset or before it: what is read is decided, and is the same whenever it is read again.
- A position is a number in Spark's log before anything behind it is read: partitions that a batch begins with, those of
  a new query too, are only noted by it, and read by the next one. What a symbolic start means does not change then.
- A position that means nothing any more ends the query by its name, unless a person gives up what was there.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Self, TypeVar

from twopc.errors import ConfigurationError
from twopc.kafka.clients.client_config import consumer_config
from twopc.kafka.clients.control_client import LATEST, ControlClient, TopicInfo
from twopc.kafka.clients.retry import call_with_retry
from twopc.kafka.input.reader import check_config
from twopc.kafka.input.startup_modes import Earliest, Specific, resolve
from twopc.kafka.input.topic_reader import GROUP
from twopc.kafka.positions.offset_status import Readability, offset_statuses
from twopc.kafka.positions.partition_position import PartitionPosition, PartitionSplit
from twopc.kafka.topic_partition import TopicPartition
from twopc.kafka.topics.preflight import require_topics
from twopc.listing import listed
from twopc.spark.streaming.source_losses import readable_positions, refuse_unnamed
from twopc.spark.streaming.source_offsets import SourceOffsets
from twopc.spark.streaming.source_options import START, SourceOptions

ANSWER_SECONDS = 30.0

T = TypeVar("T")


class SourcePlanner:
    """Asks the brokers through one connection. Used by one thread; close it."""

    def __init__(self, options: SourceOptions, client: ControlClient) -> None:
        self._options = options
        self._client = client

    @classmethod
    def connected(cls, options: SourceOptions) -> Self:
        """Raise ConfigurationError for properties that librdkafka does not take."""
        check_config(consumer_config(options.servers, GROUP, options.properties))
        return cls(options, ControlClient(options.servers, options.properties))

    def close(self) -> None:
        self._client.close()

    def ends(self) -> SourceOffsets:
        """Return where each partition ends now, for who reads what is committed."""
        return self._with_retry(lambda: self._ends(self._topics()))

    def standing(self, start: SourceOffsets) -> SourceOffsets:
        """Return the positions to read on from: those of `start` that hold, and where each new partition begins."""
        return self._with_retry(lambda: self._standing(start))

    def ranges(self, start: SourceOffsets, end: SourceOffsets) -> list[PartitionSplit]:
        """Return what a batch from `start` to `end` reads; what is the first to be named in `end` is not read yet."""
        before = start.by_partition()
        pairs = [(before[to.partition], to) for to in end.positions if before.get(to.partition, to) != to]
        both = [position for pair in pairs for position in pair]
        now = self._with_retry(lambda: readable_positions(self._client, both, self._options.accepted))
        there = [(now[at], now[to]) for at, to in pairs if at in now and to in now]
        return [
            PartitionSplit(at.partition, at.topic_id, at.position, to.position)
            for at, to in there
            if at.position < to.position
        ]

    def _with_retry(self, ask: Callable[[], T]) -> T:
        return call_with_retry(ask, ANSWER_SECONDS)

    def _topics(self) -> dict[str, TopicInfo]:
        pattern = self._options.pattern
        topics = self._options.topics if pattern is None else pattern.among(self._client.topic_names())
        require_topics(self._client, topics, "input")
        return self._client.topics(topics)

    def _ends(self, topics: Mapping[str, TopicInfo]) -> SourceOffsets:
        ends = self._client.offsets(dict.fromkeys(_partitions(topics), LATEST))
        return SourceOffsets.of(
            PartitionPosition(partition, topics[partition.topic].topic_id, at) for partition, at in ends.items()
        )

    def _standing(self, start: SourceOffsets) -> SourceOffsets:
        now = readable_positions(self._client, start.positions, self._options.accepted)
        topics = self._topics()
        refuse_unnamed([each for each in now if each.partition.topic not in topics], self._options.accepted)
        known = [each for each in now.values() if each.partition.topic in topics]
        new = set(_partitions(topics)) - {each.partition for each in known}
        read_before = {position.partition.topic for position in start.positions}
        return SourceOffsets.of([*known, *self._begun(new, topics, read_before)])

    def _begun(
        self, new: Iterable[TopicPartition], topics: Mapping[str, TopicInfo], read_before: Collection[str]
    ) -> list[PartitionPosition]:
        """Return where to begin with what was not read before: at its start where the query has begun already."""
        if not read_before:
            self._refuse_strange_start(topics)
        ids = {partition: topics[partition.topic].topic_id for partition in new}
        added = {
            each: ids[each] for each in ids if each.topic in read_before or (self._options.pattern and read_before)
        }
        begun = resolve(Earliest(), self._client, GROUP, added)
        begun |= resolve(self._options.start, self._client, GROUP, {key: ids[key] for key in ids.keys() - added})
        positions = list(begun.values())
        for status in offset_statuses(self._client, positions):
            if status.readability is not Readability.READABLE:
                at = begun[status.partition].position
                raise ConfigurationError(
                    f"{status.partition} can't be read from offset {at}, where {START} says: it has {status.first} to "
                    f"{status.end} now"
                )
        return positions

    def _refuse_strange_start(self, topics: Mapping[str, TopicInfo]) -> None:
        if isinstance(self._options.start, Specific):
            named = [partition for partition, _ in self._options.start.offsets]
            if strange := sorted(set(named) - set(_partitions(topics))):
                raise ConfigurationError(f"{START} names {listed(strange)}, which the query does not read")


def _partitions(topics: Mapping[str, TopicInfo]) -> list[TopicPartition]:
    return [TopicPartition(name, number) for name, info in topics.items() for number in range(info.partitions)]
