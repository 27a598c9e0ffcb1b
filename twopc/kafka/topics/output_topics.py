"""What is known of the topics that are written to, from their first record on."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

from twopc.kafka.clients.control_client import ControlClient
from twopc.kafka.topics.known_topics import KnownTopic
from twopc.kafka.topics.preflight import TopicsMissing, missing_topics
from twopc.kafka.topics.topic_identity import TopicIdentity
from twopc.kafka.topics.topic_lasting import LASTING_SETTINGS, FirstTimes, TopicLasting
from twopc.kafka.topics.topic_limits import LIMIT_SETTINGS, TopicLimits
from twopc.packed_column import Column, as_list

MISSING_SECONDS = 5.0
"""So long a topic that a function chose and that isn't there is not asked for again."""


class OutputTopics(ABC):
    """Of each topic that was learnt its id, how many `partitions` it has, and what it takes of a record."""

    def __init__(self) -> None:
        self.ids: dict[str, str] = {}
        self.partitions: dict[str, int] = {}
        self.limits: dict[str, TopicLimits] = {}
        self._first_times: dict[str, FirstTimes] = {}

    @abstractmethod
    def learn(self, topic: str) -> None:
        """Note what has to be known of a topic before its first record; raise TopicsMissing if it isn't there."""

    @property
    def known(self) -> dict[str, KnownTopic]:
        """Each topic that was learnt, as it was then."""
        return {topic: KnownTopic(topic_id, self.partitions[topic]) for topic, topic_id in self.ids.items()}

    def look_at(self, topic: str, stamps: Column) -> None:
        """Warn of times in the first records with which the topic won't keep them for long."""
        first = self._first_times.get(topic)
        if first is not None and not first.look_at(as_list(stamps), time.time_ns() // 1_000_000):
            del self._first_times[topic]


class BrokerTopics(OutputTopics):
    """The topics that one producer after the other writes to, as brokers had them when they were first written to.

    One that gets more partitions, or other settings, is known by the old ones until the next attempt. What isn't there
    is what the brokers said lately.
    """

    def __init__(self, client: ControlClient, identity: TopicIdentity, properties: Mapping[str, Any]) -> None:
        """`properties` are those of the producers."""
        super().__init__()
        self._client = client
        self._identity = identity
        self._properties = properties
        self._missing: dict[str, float] = {}

    def learn(self, topic: str) -> None:
        if topic in self.ids:
            return
        now = time.monotonic()
        found = self._client.topics([topic]) if now >= self._missing.get(topic, now) else {}
        if topic not in found:
            if now >= self._missing.get(topic, now):
                self._missing[topic] = now + MISSING_SECONDS
            raise TopicsMissing(missing_topics({"output": [topic]}))
        settings = self._client.settings_of(topic, (*LIMIT_SETTINGS, *LASTING_SETTINGS))
        self.limits[topic] = TopicLimits.of(settings, self._properties)
        self._first_times[topic] = FirstTimes(TopicLasting.of(topic, settings))
        self.ids[topic] = found[topic].topic_id
        self.partitions[topic] = found[topic].partitions
        self._identity.note_output(topic, found[topic].topic_id)
