"""The addresses of Kafka: a partition of a topic, and an offset in it. Pure."""

from __future__ import annotations

from typing import NamedTuple, NewType

Position = NewType("Position", int)
"""The next offset to read of a topic-partition."""


class TopicPartition(NamedTuple):
    """One Kafka partition."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}[{self.partition}]"
