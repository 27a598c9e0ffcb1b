"""Where a record stands in Kafka. Pure."""

from __future__ import annotations

from typing import NamedTuple

from twopc.kafka.topic_partition import Position, TopicPartition


class Place(NamedTuple):
    """The place of one record, written as TOPIC[PARTITION]@OFFSET."""

    partition: TopicPartition
    offset: int

    @classmethod
    def parse(cls, text: str) -> Place | None:
        """Return the place that a text is, None where it is none."""
        before, at, offset = text.rpartition("@")
        topic, bracket, number = before.removesuffix("]").rpartition("[")
        if not (at and bracket and before.endswith("]")):
            return None
        return cls.of_texts(topic, number, offset)

    @classmethod
    def of_texts(cls, topic: str, number: str, offset: str) -> Place | None:
        """Return the place of a topic, and of a partition and an offset as text; None where one of them is none."""
        if not (topic and _is_number(number) and _is_number(offset)):
            return None
        return cls(TopicPartition(topic, int(number)), Position(int(offset)))

    def __str__(self) -> str:
        return f"{self.partition}@{self.offset}"


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal()
