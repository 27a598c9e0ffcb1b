"""Output topics that aren't there: a sink describes them, and the driver creates them before a record is read."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from twopc.config import RunSettings
from twopc.errors import ConfigurationError
from twopc.kafka.clients.topic_client import TopicClient

BY_BROKERS = -1

log = logging.getLogger(__name__)


class WantedTopic(Protocol):
    """A topic that has to be there when a job starts; equal where what is wanted is the same."""

    def ensure(self, name: str, client: TopicClient, settings: RunSettings) -> None:
        """Create the topic, if it isn't there; raise ConfigurationError, naming it, if it can't be, or won't do."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class NewTopic:
    """A topic to be made at the start of a job, if it isn't there; one that is there is never changed.

    A `replication` of -1 leaves that to the brokers. `config` are settings of the topic, as `{"retention.ms": 60_000}`.
    """

    partitions: int = 1
    replication: int = BY_BROKERS
    config: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not isinstance(self.partitions, int) or self.partitions < 1:
            raise ConfigurationError(f"NewTopic needs partitions=1 or more, not {self.partitions!r}")
        if not isinstance(self.replication, int) or (self.replication < 1 and self.replication != BY_BROKERS):
            raise ConfigurationError(
                f"NewTopic needs replication=1 or more, or {BY_BROKERS} for what the brokers say, "
                f"not {self.replication!r}"
            )

    @property
    def settings(self) -> dict[str, str]:
        """The config as brokers take it."""
        return {
            name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in self.config.items()
        }

    def ensure(self, name: str, client: TopicClient, settings: RunSettings) -> None:
        """Create the topic, if it isn't there."""
        if client.ensure_topic(name, self.partitions, replication=self.replication, settings=self.settings):
            log.info("output topic %r was not there: created, with %d partitions", name, self.partitions)


NewTopics = Mapping[str, WantedTopic]


def checked_new_topic(given: NewTopic | None, topic: object, of: str = "KafkaSink") -> NewTopic | None:
    """Return what a sink, or another, was given; raise ConfigurationError if it says nothing of a topic with a name."""
    if given is None:
        return None
    if not isinstance(given, NewTopic):
        raise ConfigurationError(f"create of {of} must be a NewTopic, such as NewTopic(partitions=4), not {given!r}")
    if not isinstance(topic, str):
        raise ConfigurationError(
            "KafkaSink can create a topic that it names, but here a function chooses it for each record: create the "
            "topics beforehand (twopc topics create)"
        )
    return given


def merged(one: NewTopics, other: NewTopics) -> dict[str, WantedTopic]:
    """Return what two sinks want to be made; raise ConfigurationError where they want one topic differently."""
    for topic in one.keys() & other.keys():
        if one[topic] != other[topic]:
            raise ConfigurationError(
                f"two sinks write to topic {topic!r}, and want it created differently, {one[topic]} and "
                f"{other[topic]}: say create= at one of them"
            )
    return {**one, **other}


def create_missing(topics: NewTopics, servers: str, properties: Mapping[str, Any], settings: RunSettings) -> None:
    """Create those of the topics that aren't there; raise ConfigurationError, naming it, for one that is refused."""
    if not topics:
        return
    with TopicClient(servers, properties) as client:
        for name, wanted in topics.items():
            wanted.ensure(name, client, settings)
