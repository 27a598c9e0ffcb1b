"""Positions of what went through the dataflow, where some of what was read waits in it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from twopc.protocol.facts import PartitionPosition
from twopc.protocol.ids import Position, TopicPartition
from twopc.record import Row


def held_back(read: Sequence[PartitionPosition], waiting: Iterable[Row]) -> tuple[PartitionPosition, ...]:
    """Return the positions up to which all was processed: of a partition with rows that wait, that of the first."""
    first: dict[TopicPartition, int] = {}
    for row in waiting:
        first.setdefault(TopicPartition(str(row.topic()), int(row.partition() or 0)), int(row.offset() or 0))
    return tuple(
        replace(item, position=Position(first[item.partition])) if item.partition in first else item for item in read
    )
