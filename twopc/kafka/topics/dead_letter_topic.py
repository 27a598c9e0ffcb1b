"""The topic of dead letters as it has to be when a job starts."""

from __future__ import annotations

from dataclasses import dataclass

from twopc.config import RunSettings
from twopc.errors import ConfigurationError
from twopc.kafka.clients.retry import call_with_retry
from twopc.kafka.clients.topic_client import TopicClient
from twopc.kafka.topics.new_topic import NewTopic
from twopc.kafka.topics.topic_limits import CLEANUP, LARGEST

BUDGET_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class DeadLetterTopic:
    """A topic that keeps every dead letter: `create` is how it is made where it isn't there, None for never.

    `largest` is the largest record that the job's producer sends.
    """

    create: NewTopic | None
    largest: int

    def ensure(self, name: str, client: TopicClient, settings: RunSettings) -> None:
        """Create the topic, if that is wanted and it isn't there; refuse one that would not take every dead letter."""
        if self.create is not None:
            self.create.ensure(name, client, settings)
        if not call_with_retry(lambda: client.topics([name]), BUDGET_SECONDS):
            return
        stored = call_with_retry(lambda: client.settings_of(name, (CLEANUP, LARGEST)), BUDGET_SECONDS)
        self.check(name, stored[CLEANUP], stored[LARGEST])

    def check(self, name: str, cleanup: str | None, largest: str | None) -> None:
        """Raise ConfigurationError for settings of a topic that don't do; None is one that nobody may see."""
        if cleanup is not None and "compact" in cleanup:
            raise ConfigurationError(
                f"topic {name!r} of dead letters has {CLEANUP}={cleanup}, which deletes all but the last dead letter "
                f"of a key, and takes none without a key: set {CLEANUP}=delete (kafka-configs.sh --alter --entity-type "
                f"topics --entity-name {name})"
            )
        if largest is not None and int(largest) < self.largest:
            raise ConfigurationError(
                f"topic {name!r} of dead letters has {LARGEST}={largest}, and the job's producer sends up to "
                f"{self.largest} bytes (message.max.bytes): set {LARGEST} of the topic to that, or more"
            )
