"""The offsets of a query, as a value that Spark stores as JSON in its checkpointLocation. Pure.

{"version": 1, "topics": {"orders": {"id": "ZqR...", "offsets": {"0": 120, "1": 98}}}}

Of each partition the next offset to read; the topic's id tells it from a later one of the same name. Spark compares
offsets by their text, so what is equal is written equally. That of a query which has read nothing names no topic.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from twopc.errors import ConfigurationError
from twopc.kafka.positions.partition_position import PartitionPosition
from twopc.kafka.topic_partition import Position, TopicPartition

VERSION = 1


@dataclass(frozen=True, slots=True)
class SourceOffsets:
    """Positions, one for each partition that is known, in order."""

    positions: tuple[PartitionPosition, ...] = ()

    @classmethod
    def of(cls, positions: Iterable[PartitionPosition]) -> SourceOffsets:
        return cls(tuple(sorted(positions, key=lambda position: position.partition)))

    def by_partition(self) -> dict[TopicPartition, PartitionPosition]:
        return {position.partition: position for position in self.positions}

    def to_json(self) -> dict[str, Any]:
        """Return what Spark stores."""
        topics = {}
        for (topic, topic_id), held in groupby(self.positions, key=lambda each: (each.partition.topic, each.topic_id)):
            offsets = {str(position.partition.partition): position.position for position in held}
            topics[topic] = {"id": topic_id, "offsets": offsets}
        return {"version": VERSION, "topics": topics}

    @classmethod
    def from_json(cls, stored: Any) -> SourceOffsets:
        """Raise ConfigurationError for what this source has not stored."""
        match stored:
            case {"version": int() as version, "topics": dict() as topics} if version == VERSION:
                try:
                    return cls.of(_positions(topics))
                except (AttributeError, KeyError, TypeError, ValueError):
                    pass
        raise ConfigurationError(
            f"Spark's log holds offsets that this version of twopc-kafka has not stored: {json.dumps(stored)}. Did the "
            "query have another source? Give it a new checkpointLocation, and say where to go on by startingOffsets"
        )


def _positions(topics: Mapping[str, Any]) -> Iterator[PartitionPosition]:
    for topic, held in topics.items():
        for number, offset in held["offsets"].items():
            yield PartitionPosition(TopicPartition(topic, int(number)), str(held["id"]), Position(int(offset)))
