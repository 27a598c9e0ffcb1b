"""The output topics as they are found when somebody judges what was written to them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from twopc.kafka.topics.output_topics import OutputTopics
from twopc.kafka.topics.topic_limits import TopicLimits

ANY_PARTITION = 2**31 - 1
"""The number of partitions of a topic that nobody looked at: no number is too high."""


class FoundTopics(OutputTopics):
    """What is known of each topic. One of which nothing is known takes everything."""

    def __init__(self, partitions: Mapping[str, int], limits: Mapping[str, TopicLimits]) -> None:
        """`limits` are those of now: what is too old for a topic by now may not have been when it was written."""
        super().__init__()
        self.partitions |= partitions
        self.limits |= {topic: replace(limit, before_ms=None) for topic, limit in limits.items()}

    def learn(self, topic: str) -> None:
        self.partitions.setdefault(topic, ANY_PARTITION)
