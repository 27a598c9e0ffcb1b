"""Kafka's partitions as splits, and its offsets as positions: only here are they taken apart.

A split's id is `topic[number]`. Its start, its stop and its positions are `[offset, topic id]`: the offset is the next
one to read, and the id tells a recreated topic from the one that was read.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from twopc.errors import CheckpointCorrupted
from twopc.kafka.topic_partition import Position, TopicPartition
from twopc.protocol.facts import SplitPosition
from twopc.source import Split

_PARTITION = re.compile(r"(.+)\[(\d+)\]", re.ASCII)


@dataclass(frozen=True, slots=True)
class PartitionPosition:
    """The position of a subtask in one partition."""

    partition: TopicPartition
    topic_id: str
    position: Position

    def __str__(self) -> str:
        return f"{self.partition}@{self.position}"

    def to_split_position(self) -> SplitPosition:
        return SplitPosition(str(self.partition), self.partition.partition, [self.position, self.topic_id])

    @classmethod
    def from_split_position(cls, held: SplitPosition) -> PartitionPosition:
        """Raise CheckpointCorrupted if it is not a position of Kafka's."""
        offset, topic_id = _parsed(held.split, held.position)
        return cls(partition_of(held.split), topic_id, offset)


@dataclass(frozen=True, slots=True)
class PartitionSplit:
    """One partition to read: from `start`, and up to `stop` (exclusive; the test is on the position), or for ever."""

    partition: TopicPartition
    topic_id: str
    start: Position
    stop: Position | None

    def to_split(self) -> Split:
        stop = None if self.stop is None else [self.stop, self.topic_id]
        return Split(str(self.partition), self.partition.partition, [self.start, self.topic_id], stop)

    @classmethod
    def from_split(cls, split: Split) -> PartitionSplit:
        start, topic_id = _parsed(split.id, split.start)
        stop = None if split.stop is None else _parsed(split.id, split.stop)[0]
        return cls(partition_of(split.id), topic_id, start, stop)


def partition_of(split: str) -> TopicPartition:
    """Return the partition that a split is; raise CheckpointCorrupted if it is none of Kafka's."""
    found = _PARTITION.fullmatch(split)
    if found is None:
        raise CheckpointCorrupted(f"split {split!r} is not a partition of a Kafka topic, such as orders[3]")
    return TopicPartition(found[1], int(found[2]))


def input_of(split: str) -> str:
    """Return the topic of which a split is a partition; of another source's split its id."""
    found = _PARTITION.fullmatch(split)
    return found[1] if found else split


def partition_positions(positions: Iterable[SplitPosition]) -> tuple[PartitionPosition, ...]:
    """Return Kafka's own view of what a Kafka source stored; raise CheckpointCorrupted if another did."""
    return tuple(map(PartitionPosition.from_split_position, positions))


def split_positions(positions: Iterable[PartitionPosition]) -> tuple[SplitPosition, ...]:
    """Return these positions as a source hands them out."""
    return tuple(position.to_split_position() for position in positions)


def offsets_of(positions: Iterable[SplitPosition]) -> dict[TopicPartition, Position]:
    """Return the next offset of each partition."""
    return {held.partition: held.position for held in partition_positions(positions)}


def _parsed(split: str, position: object) -> tuple[Position, str]:
    match position:
        case [int() as offset, str() as topic_id]:
            return Position(offset), topic_id
    raise CheckpointCorrupted(f"split {split!r} has position {position!r}, which is no offset and topic id of Kafka's")
