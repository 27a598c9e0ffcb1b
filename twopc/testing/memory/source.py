"""A Kafka source whose topics are in memory: production's planner and decoding, and a reader of its own."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from heapq import merge
from itertools import islice
from typing import Any

from twopc.context import JobContext, SubtaskContext
from twopc.kafka.clients.control_client import EARLIEST, LATEST, ControlClient, GroupOffset, TopicInfo
from twopc.kafka.input.decoding import decoded
from twopc.kafka.input.planner import KafkaPlanner
from twopc.kafka.positions.partition_position import PartitionPosition, PartitionSplit, split_positions
from twopc.kafka.source import KafkaSource
from twopc.kafka.topic_partition import Position, TopicPartition
from twopc.kafka.topic_serdes import TopicSerdes
from twopc.protocol.facts import SplitPosition
from twopc.record import Batch, Row
from twopc.serde import Serde
from twopc.source import SourcePlanner, SourceReader, Split
from twopc.testing.memory.topics import LogRecord, MemoryTopics
from twopc.testing.rows import keys_in, values_in
from twopc.time_marks import as_read


class MemorySource(KafkaSource):
    """The same source, but for where its topics are."""

    def __init__(self, source: KafkaSource, topics: MemoryTopics) -> None:
        vars(self).update(vars(source))
        self.has_marks = source.has_marks
        self._memory = topics

    def with_access(self, properties: Mapping[str, Any]) -> MemorySource:
        return self

    def watched(self, context: JobContext) -> AbstractContextManager[object]:
        return nullcontext()

    def open_planner(self, context: JobContext) -> SourcePlanner:
        group, none = self._group(context), frozenset[str]()
        return MemoryPlanner(self.topics, group, self.start, "", {}, None, self.key, self.value, (), none, self._memory)

    def open_reader(self, context: SubtaskContext, splits: Sequence[Split]) -> SourceReader:
        partitions = list(map(PartitionSplit.from_split, splits))
        return (MarkedReader if self.has_marks else MemoryReader)(self._memory, self.key, self.value, partitions)


@dataclass(frozen=True, slots=True)
class MemoryPlanner(KafkaPlanner):
    """Production's, which asks the topics in memory. Nobody follows the positions: there is no consumer group."""

    memory: MemoryTopics

    def connect(self) -> ControlClient:
        return MemoryClient(self.memory)

    def follower(self) -> None:  # type: ignore[override]
        return None


class MemoryClient(ControlClient):
    """The client of a planner, which it asks as it asks brokers."""

    def __init__(self, topics: MemoryTopics) -> None:
        self.properties = {}
        self._topics = topics

    def close(self) -> None:
        """Nothing is open."""

    def topics(self, names: Iterable[str], node: int | None = None) -> dict[str, TopicInfo]:
        there = (name for name in names if self._topics.exists(name))
        return {name: TopicInfo(topic_id(name), len(self._topics.partitions_of(name))) for name in there}

    def topic_operations(self, names: Sequence[str]) -> dict[str, frozenset[str]]:
        return {}

    def group_operations(self, group: str) -> frozenset[str]:
        return frozenset({"Read"})

    def group_offsets(self, group: str, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, GroupOffset]:
        return {}

    def offsets(self, at: Mapping[TopicPartition, int]) -> dict[TopicPartition, Position]:
        return {partition: Position(self._offset(*partition, when)) for partition, when in at.items()}

    def _offset(self, topic: str, partition: int, when: int) -> int:
        match when:
            case int() if when == EARLIEST:
                return 0
            case int() if when == LATEST:
                return self._topics.end(topic, partition)
            case _:
                return self._topics.offset_at(topic, partition, when)


class MemoryReader(SourceReader):
    """Reads its splits in the order in which their records were appended. A poll waits for nothing."""

    def __init__(self, topics: MemoryTopics, key: Serde, value: Serde, splits: Sequence[PartitionSplit]) -> None:
        self._topics = topics
        self._serdes = TopicSerdes(key, value, dict.fromkeys(split.partition.topic for split in splits))
        self._splits = {split.partition: split for split in splits}
        self._at = {split.partition: int(split.start) for split in splits}

    def poll(self, timeout: float, most: int) -> Batch | None:
        readable = merge(*map(self._readable, self._splits.values()), key=lambda record: record.number)
        rows = [record.row for record in islice(readable, most)]
        for row in rows:
            self._at[TopicPartition(row.topic_, row.partition_)] = row.offset_ + 1
        self._skip_aborted()
        return decoded(rows, self._serdes, keys_in, values_in) if rows else None

    def positions(self, waiting: Iterable[Row] = ()) -> tuple[SplitPosition, ...]:
        at = dict(self._at)
        for row in waiting:
            partition = TopicPartition(str(row.topic()), int(row.partition() or 0))
            at[partition] = min(at[partition], row.offset() or 0)
        return split_positions(
            PartitionPosition(partition, split.topic_id, Position(at[partition]))
            for partition, split in self._splits.items()
        )

    def bound(self) -> bool:
        for partition, split in self._splits.items():
            if split.stop is None:
                stop = Position(max(self._at[partition], self._topics.end(*partition)))
                self._splits[partition] = replace(split, stop=stop)
        return True

    def finished(self) -> bool:
        return all(
            split.stop is not None and self._at[partition] >= split.stop for partition, split in self._splits.items()
        )

    def caught_up(self) -> frozenset[str]:
        return frozenset(
            str(at) for at, split in self._splits.items() if next(iter(self._readable(split)), None) is None
        )

    def lag(self) -> int:
        return sum(1 for split in self._splits.values() for _ in self._readable(split))

    def close(self) -> None:
        self._serdes.close()

    def _readable(self, split: PartitionSplit) -> Iterable[LogRecord]:
        return self._topics.readable(*split.partition, self._at[split.partition], split.stop)

    def _skip_aborted(self) -> None:
        """Move over what is no record, where that is all that is left."""
        for partition, split in self._splits.items():
            if next(iter(self._readable(split)), None) is None:
                end = self._topics.end(*partition)
                self._at[partition] = max(self._at[partition], end if split.stop is None else min(end, split.stop))


class MarkedReader(MemoryReader):
    """Reads what the job has written, with marks of time among it."""

    def poll(self, timeout: float, most: int) -> Batch | None:
        batch = super().poll(timeout, most)
        return None if batch is None else as_read(batch)


def topic_id(topic: str) -> str:
    """Return the id that a topic in memory has."""
    return f"memory-{topic}"
