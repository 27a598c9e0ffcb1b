"""The topics of a cluster: created, described and deleted. A job creates those that it is told to, no more."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from twopc.errors import ConfigurationError, Unavailable
from twopc.kafka.clients.authorization_errors import needs
from twopc.kafka.clients.control_client import ControlClient
from twopc.kafka.clients.kafka_python import (
    CreateTopicsRequest,
    DeleteTopicsRequest,
    KafkaAdminClient,
    KafkaTopicPartition,
    errors,
)
from twopc.kafka.clients.retry import backoff, call_with_retry
from twopc.kafka.topic_partition import TopicPartition

PATIENCE_SECONDS = 120.0
"""How long brokers may take to do what they have accepted."""

_BROKER_TIMEOUT_MS = 9_000
_REFUSED = (
    errors.UnknownTopicOrPartitionError,
    errors.InvalidTopicError,
    errors.InvalidPartitionsError,
    errors.InvalidReplicationFactorError,
    errors.InvalidConfigurationError,
    errors.InvalidRequestError,
    errors.PolicyViolationError,
    errors.TopicDeletionDisabledError,
)


class TopicExistsError(ConfigurationError):
    """A topic that was to be created is there."""


@dataclass(frozen=True, slots=True)
class TopicDescription:
    """A topic as the brokers describe it."""

    name: str
    topic_id: str
    partitions: int
    replication: int
    internal: bool
    leaders: int
    """How many partitions have a leader."""


class TopicClient(ControlClient):
    """A ControlClient that creates and deletes topics too. Any thread may call."""

    def describe_topics(self) -> list[TopicDescription]:
        """Return every topic that may be seen, by name."""
        described = self._brokers.run(lambda client: client._get_cluster_metadata(None))["topics"]
        return [_described(each) for each in sorted(described, key=lambda each: str(each["name"]))]

    def create_topic(
        self, name: str, partitions: int = 1, *, replication: int = -1, settings: Mapping[str, str] | None = None
    ) -> None:
        """Create a topic, and return when every partition has a leader; raise ConfigurationError if it is refused.

        A replication of -1 leaves that to the brokers.
        """
        kind = CreateTopicsRequest.CreatableTopic
        topic = kind(
            name=name,
            num_partitions=partitions,
            replication_factor=replication,
            assignments=[],
            configs=[kind.CreatableTopicConfig(name=each, value=value) for each, value in (settings or {}).items()],
        )
        request = CreateTopicsRequest(topics=[topic], timeout_ms=_BROKER_TIMEOUT_MS, validate_only=False)
        self._change("created", name, request, lambda answer: answer.topics, errors.TopicAlreadyExistsError)
        self._await_leaders(name)

    def ensure_topic(
        self, name: str, partitions: int = 1, *, replication: int = -1, settings: Mapping[str, str] | None = None
    ) -> bool:
        """Create a topic unless it is there, or another creates it now; return whether this call did.

        Returns when every broker that answers knows it.
        """
        if call_with_retry(lambda: self.topics([name]), PATIENCE_SECONDS):
            return False
        created = True
        try:
            self.create_topic(name, partitions, replication=replication, settings=settings)
        except TopicExistsError:
            created = False
            self._await_leaders(name)
        self._await_everywhere(name)
        return created

    def delete_topic(self, name: str) -> None:
        """Delete a topic, and return when it is no longer there; raise ConfigurationError if that is refused."""
        request = DeleteTopicsRequest(
            topics=[DeleteTopicsRequest.DeleteTopicState(name=name)], timeout_ms=_BROKER_TIMEOUT_MS
        )
        self._change("deleted", name, request, lambda answer: answer.responses, errors.UnknownTopicOrPartitionError)
        self._await(name, lambda topic: topic is None, "is still there")

    def delete_records(self, before: Mapping[TopicPartition, int]) -> None:
        """Delete the records before these offsets; of those that are gone already, nothing more."""
        asked = {KafkaTopicPartition(*partition): offset for partition, offset in before.items()}
        self._brokers.run(lambda client: client._async_delete_records(asked, _BROKER_TIMEOUT_MS))

    def _change(
        self, done: str, name: str, request: Any, results: Callable[[Any], Any], already: type[Exception]
    ) -> None:
        """Ask until there is an answer; after a lost one, `already` says that the lost one had done it."""
        lost: list[Unavailable] = []

        def ask() -> Any:
            try:
                return self._brokers.run(lambda client: client._send_request_to_controller(request, raise_errors=False))
            except Unavailable as error:
                lost.append(error)
                raise

        [result] = results(call_with_retry(ask, PATIENCE_SECONDS))
        error = errors.for_code(result.error_code)
        if error is errors.NoError or (lost and error is already):
            return
        reason = result.error_message or error.__name__
        if error is errors.TopicAlreadyExistsError:
            raise TopicExistsError(f"topic {name!r} can't be {done}: {reason}")
        if issubclass(error, _REFUSED):
            raise ConfigurationError(f"topic {name!r} can't be {done}: {reason}")
        if issubclass(error, errors.AuthorizationError):
            operation = "Create" if done == "created" else "Delete"
            raise needs(f"topic {name!r} can't be {done}: {reason}", f"{operation} on topic {name!r}", self.properties)
        raise self._brokers.failure_of(error(reason))

    def _await_leaders(self, name: str) -> None:
        self._await(name, lambda topic: topic is not None and topic.leaders == topic.partitions, "has no leaders")

    def _await_everywhere(self, name: str) -> None:
        """Wait for the brokers that answer: a subtask may ask any of them."""
        for broker in self._brokers.client()._manager.cluster.brokers():
            for _ in backoff(PATIENCE_SECONDS):
                try:
                    if self.topics([name], broker.node_id):
                        break
                except Unavailable:
                    break

    def _await(self, name: str, condition: Callable[[TopicDescription | None], bool], complaint: str) -> None:
        for _ in backoff(PATIENCE_SECONDS):
            if condition(call_with_retry(lambda: self._described(name), PATIENCE_SECONDS)):
                return
        raise Unavailable(f"topic {name!r} {complaint} after {PATIENCE_SECONDS:.0f} s")

    def _described(self, name: str) -> TopicDescription | None:
        async def ask(client: KafkaAdminClient) -> Any:
            return await client._get_cluster_metadata([name])

        [described] = self._brokers.run(ask)["topics"]
        return None if described["error_code"] else _described(described)


def _described(topic: Mapping[str, Any]) -> TopicDescription:
    partitions = topic["partitions"]
    return TopicDescription(
        name=str(topic["name"]),
        topic_id=str(topic["topic_id"]),
        partitions=len(partitions),
        replication=max((len(partition["replica_nodes"]) for partition in partitions), default=0),
        internal=bool(topic["is_internal"]),
        leaders=sum(1 for partition in partitions if partition["leader_id"] >= 0 and not partition["error_code"]),
    )
