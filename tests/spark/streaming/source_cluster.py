"""Brokers that answer the questions of the source `twopc-kafka` from a table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from twopc.kafka.clients.control_client import EARLIEST, LATEST, ControlClient, TopicInfo
from twopc.kafka.topic_partition import Position, TopicPartition
from twopc.spark.streaming.source_offsets import SourceOffsets
from twopc.spark.streaming.source_options import SourceOptions
from twopc.spark.streaming.source_planner import SourcePlanner
from twopc.spark.streaming.source_reader import KafkaStreamReader

SERVERS = {"kafka.bootstrap.servers": "127.0.0.1:9092"}


@dataclass
class Topic:
    """Its id, and of each partition the first offset and the last stable one."""

    topic_id: str
    partitions: list[tuple[int, int]]


@dataclass
class FakeCluster:
    """A timestamp is an offset here."""

    known: dict[str, Topic] = field(default_factory=dict)

    def topic_names(self) -> list[str]:
        return list(self.known)

    def topics(self, names: Iterable[str], node: int | None = None) -> dict[str, TopicInfo]:
        found = {name: self.known[name] for name in names if name in self.known}
        return {name: TopicInfo(topic.topic_id, len(topic.partitions)) for name, topic in found.items()}

    def offsets(self, at: Mapping[TopicPartition, int]) -> dict[TopicPartition, Position]:
        return {each: Position(self._offset(each, when)) for each, when in at.items()}

    def epoch_ends(self, epochs: Mapping[TopicPartition, int]) -> dict[TopicPartition, Position | None]:
        assert not epochs, "a query's offsets have no epochs"
        return {}

    def close(self) -> None:
        pass

    def _offset(self, partition: TopicPartition, when: int) -> int:
        first, end = self.known[partition.topic].partitions[partition.partition]
        return first if when == EARLIEST else end if when == LATEST else min(max(first, when), end)


def options(**said: str) -> SourceOptions:
    return SourceOptions.of(SERVERS | ({"subscribe": "orders"} | said if "subscribePattern" not in said else said))


class FakedReader(KafkaStreamReader):
    """A reader that asks such brokers."""

    def __init__(self, cluster: FakeCluster, **said: str) -> None:
        super().__init__(options(**said))
        self._opened = SourcePlanner(self._options, cast(ControlClient, cluster))

    def next(self, start: dict[str, Any]) -> dict[str, Any]:
        """The end of the batch that begins there, by the limit that Spark would give."""
        return self.latestOffset(start, self.getDefaultReadLimit())

    def ranges(self, start: dict[str, Any], end: dict[str, Any]) -> dict[str, tuple[int, int]]:
        """What the batch reads, by partition."""
        found = [each.value for each in self.partitions(start, end)]
        return {str(each.partition): (each.start, each.stop) for each in found}


def by_partition(offsets: dict[str, Any]) -> dict[str, int]:
    return {str(each.partition): each.position for each in SourceOffsets.from_json(offsets).positions}
