"""Kafka's partitions as splits, and its offsets as positions: only here are they taken apart.

A split's id is `topic[number]`. Its start, its stop and its positions are `[offset, topic id]`: the offset is the next
one to read, and the id tells a recreated topic from the one that was read. Where there is more to say of a partition,
`[offset, topic id, {"read": [epoch, offset], "gaps": [[from, to], ...], "gone": true, "passed": [[from, to], ...]}]`:
the leader epoch of what was read last, right before that offset; what was deleted before it was read and given up; that
the topic is not there any more, and the position is kept in case that it comes back; what stands behind the offset and
is passed over, because another course of the job wrote it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

from twopc.errors import CheckpointCorrupted
from twopc.kafka.topic_partition import Position, TopicPartition
from twopc.protocol.codec import to_json
from twopc.protocol.envelope import decode_body
from twopc.protocol.facts import SplitPosition
from twopc.source import Split

_PARTITION = re.compile(r"(.+)\[(\d+)\]", re.ASCII)


Gap = tuple[Position, Position]
"""Offsets that nobody read: from the first to before the second."""


def is_in(ranges: Iterable[Gap], offset: int) -> bool:
    """Whether an offset is in one of these ranges."""
    return any(first <= offset < end for first, end in ranges)


class LastRead(NamedTuple):
    """The leader epoch of what was read last, right before offset `end`.

    A log whose offsets up to there are of this epoch and earlier ones is the log that was read (KIP-320).
    """

    epoch: int
    end: Position


@dataclass(frozen=True, slots=True)
class PartitionPosition:
    """The position of a subtask in one partition: `gaps` stand before it, what is `passed` over stands behind.

    It is `gone` with its topic.
    """

    partition: TopicPartition
    topic_id: str
    position: Position
    gaps: tuple[Gap, ...] = ()
    gone: bool = False
    read: LastRead | None = None
    passed: tuple[Gap, ...] = ()

    def __str__(self) -> str:
        return f"{self.partition}@{self.position}"

    def to_split_position(self) -> SplitPosition:
        held = _value(self.position, self.topic_id, _Remarks(self.read, self.gaps, self.gone, self.passed))
        return SplitPosition(str(self.partition), self.partition.partition, held)

    @classmethod
    def from_split_position(cls, held: SplitPosition) -> PartitionPosition:
        """Raise CheckpointCorrupted if it is not a position of Kafka's."""
        offset, topic_id, known = _parsed(held.split, held.position)
        return cls(partition_of(held.split), topic_id, offset, known.gaps, known.gone, known.read, known.passed)


@dataclass(frozen=True, slots=True)
class PartitionSplit:
    """One partition to read: from `start`, and up to `stop` (exclusive; the test is on the position), or for ever.

    One that is `gone` stops where it starts: nobody reads it, and its position is kept.
    """

    partition: TopicPartition
    topic_id: str
    start: Position
    stop: Position | None
    gaps: tuple[Gap, ...] = ()
    gone: bool = False
    read: LastRead | None = None
    passed: tuple[Gap, ...] = ()

    def to_split(self) -> Split:
        start = _value(self.start, self.topic_id, _Remarks(self.read, self.gaps, self.gone, self.passed))
        stop = None if self.stop is None else [self.stop, self.topic_id]
        return Split(str(self.partition), self.partition.partition, start, stop)

    @classmethod
    def from_split(cls, split: Split) -> PartitionSplit:
        start, topic_id, known = _parsed(split.id, split.start)
        stop = None if split.stop is None else _parsed(split.id, split.stop)[0]
        return cls(partition_of(split.id), topic_id, start, stop, known.gaps, known.gone, known.read, known.passed)

    def at(self, position: Position, read: LastRead | None = None) -> PartitionPosition:
        """Return a position in this partition; unless it says what was `read` last, that was before the start."""
        passed = tuple(each for each in self.passed if each[1] > position)
        read = read or self.read
        return PartitionPosition(self.partition, self.topic_id, position, self.gaps, self.gone, read, passed)


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


def gaps_of(position: object) -> list[list[int]]:
    """Return the gaps that a position of a source has, as JSON has them: of one that is no partition's, none."""
    match position:
        case [int(), str(), {"gaps": [*gaps]}]:
            return [list(gap) for gap in gaps]
    return []


@dataclass(frozen=True, slots=True)
class _Remarks:
    """What there is to say of a partition besides; stored where it is not the default."""

    read: LastRead | None = None
    gaps: tuple[Gap, ...] = ()
    gone: bool = False
    passed: tuple[Gap, ...] = ()


def _value(offset: Position, topic_id: str, remarks: _Remarks) -> list[Any]:
    stored = {name: value for name, value in to_json(remarks).items() if value}
    return [offset, topic_id, *([stored] if stored else [])]


def _parsed(split: str, position: object) -> tuple[Position, str, _Remarks]:
    match position:
        case [int() as offset, str() as topic_id]:
            return Position(offset), topic_id, _Remarks()
        case [int() as offset, str() as topic_id, dict() as remarks]:
            return Position(offset), topic_id, decode_body(_Remarks, remarks, "position", f"split {split!r}")
    raise CheckpointCorrupted(f"split {split!r} has position {position!r}, which is no offset and topic id of Kafka's")


def oldest(kept: Iterable[SplitPosition]) -> dict[TopicPartition, PartitionPosition]:
    """Return the least position of each partition: nothing that is kept would read what is before it."""
    found: dict[TopicPartition, PartitionPosition] = {}
    for held in partition_positions(kept):
        found[held.partition] = min(found.get(held.partition, held), held, key=lambda each: each.position)
    return found
