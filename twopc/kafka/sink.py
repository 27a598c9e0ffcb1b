"""The Kafka sink: a description that is copied to every subtask, and opens nothing before it is told to."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from enum import Enum
from typing import Any, ClassVar

from twopc.context import JobContext, SubtaskContext
from twopc.errors import ConfigurationError
from twopc.kafka.clients.access import copy_with_access
from twopc.kafka.clients.client_config import checked_producer_properties
from twopc.kafka.clients.leaders import LeaderClient
from twopc.kafka.clients.outage import leave_to_driver, watched
from twopc.kafka.clients.retry import call_with_retry
from twopc.kafka.output.non_transactional_writers import AtLeastOnceWriter, NonTransactionalWriter
from twopc.kafka.output.topic_output import TopicOf, TopicOutput
from twopc.kafka.output.writer_config import DRIVER, WriterConfig
from twopc.kafka.positions.partition_position import PartitionSplit, input_of
from twopc.kafka.source import KafkaSource
from twopc.kafka.topic_serdes import TopicSerdes
from twopc.kafka.topics.new_topic import NewTopic, NewTopics, checked_new_topic
from twopc.kafka.topics.output_topics import BrokerTopics, OutputTopics
from twopc.kafka.topics.partitioner import SOURCE, Partitioner, checked_partitioner, too_few
from twopc.kafka.topics.preflight import (
    bootstrap_servers_of,
    same_brokers,
    transaction_timeout_ms,
    warn_of_internal_topics,
)
from twopc.kafka.topics.subtask_client import SubtaskClient
from twopc.kafka.topics.topic_name import checked_topic
from twopc.kafka.transactions.committer import PlainCommitter, TransactionalCommitter
from twopc.kafka.transactions.transactional import TransactionalWriter
from twopc.protocol.ids import SubtaskIndex, checked_name
from twopc.serde import BYTES, Serde, checked_serde
from twopc.sink import Committer, SharedTransaction, Sink, SinkWriter, reads_own_output
from twopc.source import Source, Split

TOPICS_BUDGET_SECONDS = 30.0

WriterOf = Callable[[WriterConfig, TopicOutput, SubtaskClient], SinkWriter]


class DeliveryGuarantee(Enum):
    """The guarantee to readers. Only the first hides what a crash leaves behind, from read_committed readers."""

    EXACTLY_ONCE = "exactly_once"
    AT_LEAST_ONCE = "at_least_once"
    NONE = "none"


def _transactional_writer(config: WriterConfig, output: TopicOutput, client: SubtaskClient) -> TransactionalWriter:
    timeout_ms = transaction_timeout_ms(config.settings, client)
    return TransactionalWriter(config, output, client, client.identity, timeout_ms)


def _non_transactional_writer(
    config: WriterConfig, output: TopicOutput, client: SubtaskClient
) -> NonTransactionalWriter:
    return NonTransactionalWriter(config, output, client, client.identity)


def _at_least_once_writer(config: WriterConfig, output: TopicOutput, client: SubtaskClient) -> AtLeastOnceWriter:
    return AtLeastOnceWriter(config, output, client, client.identity)


def _one_per_cluster(config: WriterConfig) -> SharedTransaction:
    with LeaderClient(config.bootstrap_servers, config.properties) as client:
        cluster = client.cluster_id()
    settings = (config.bootstrap_servers, dict(config.properties))
    return SharedTransaction(f"kafka/{cluster}/{config.prefix}", cluster, settings)


def _none(config: WriterConfig) -> None:
    return None


class KafkaSink(Sink):
    """Writes records to a topic, or to the topic that a function of the record returns.

    Key, headers and timestamp of a record are kept. Its partition is, by `partitioner`:

    - `"murmur2"`, and where none is given: that of the key's murmur2, as Java's clients have it, so what has one key
      has one partition whoever writes it; any for a record without a key. `properties={"partitioner": ...}` names
      another one of librdkafka's instead;
    - `"source"`: the number of the partition that the record was read from, of which the topic must have enough;
    - a function of the record, with key and value as they come to the sink, and of the topic's number of partitions,
      that returns a number from 0 on. It must return the same for the same record, or a replay writes another output.

    `create` is how the topic is made at the start, if it isn't there: `NewTopic(partitions=4)`. Without it the start is
    refused then. `transactional_id_prefix` is the job's name unless given; no two
    jobs on one cluster may share it. `properties` are librdkafka's, for the producers.
    """

    writers: ClassVar[Mapping[DeliveryGuarantee, WriterOf]] = {
        DeliveryGuarantee.EXACTLY_ONCE: _transactional_writer,
        DeliveryGuarantee.AT_LEAST_ONCE: _at_least_once_writer,
        DeliveryGuarantee.NONE: _non_transactional_writer,
    }
    committers: ClassVar[Mapping[DeliveryGuarantee, type[PlainCommitter]]] = {
        DeliveryGuarantee.EXACTLY_ONCE: TransactionalCommitter,
        DeliveryGuarantee.AT_LEAST_ONCE: PlainCommitter,
        DeliveryGuarantee.NONE: PlainCommitter,
    }
    sharing: ClassVar[Mapping[DeliveryGuarantee, Callable[[WriterConfig], SharedTransaction | None]]] = {
        DeliveryGuarantee.EXACTLY_ONCE: _one_per_cluster,
        DeliveryGuarantee.AT_LEAST_ONCE: _none,
        DeliveryGuarantee.NONE: _none,
    }

    def __init__(
        self,
        topic: TopicOf,
        *,
        key: Serde = BYTES,
        value: Serde = BYTES,
        partitioner: Partitioner = None,
        create: NewTopic | None = None,
        delivery_guarantee: str | DeliveryGuarantee = DeliveryGuarantee.EXACTLY_ONCE,
        transactional_id_prefix: str | None = None,
        bootstrap_servers: str | None = None,
        properties: Mapping[str, Any] | None = None,
    ) -> None:
        if not topic or not (isinstance(topic, str) or callable(topic)):
            raise ConfigurationError(
                f"KafkaSink needs a topic's name, or a function of a record that returns one, not {topic!r}"
            )
        self.topic = checked_topic("KafkaSink", topic) if isinstance(topic, str) else topic
        self.key = checked_serde("key of KafkaSink", key)
        self.value = checked_serde("value of KafkaSink", value)
        self.delivery_guarantee = _guarantee(delivery_guarantee)
        self.transactional_id_prefix = transactional_id_prefix
        if transactional_id_prefix is not None:
            checked_name("transactional_id_prefix", transactional_id_prefix)
        self.bootstrap_servers = bootstrap_servers
        self.properties = checked_producer_properties(properties or {})
        self.create = checked_new_topic(create, topic)
        self.partitioner = checked_partitioner(partitioner, self.properties)

    @property
    def outputs(self) -> tuple[str, ...]:
        return (self.topic,) if isinstance(self.topic, str) else ()

    @property
    def new_topics(self) -> NewTopics:
        """The topics that are created at the start, if they aren't there."""
        return {} if self.create is None else dict.fromkeys(self.outputs, self.create)

    def describe(self) -> Mapping[str, Any]:
        return {
            "type": "KafkaSink",
            "topic": self.topic if isinstance(self.topic, str) else _named(self.topic),
            "key": self.key,
            "value": self.value,
            "delivery_guarantee": self.delivery_guarantee.value,
            **({} if self.partitioner is None else {"partitioner": _named(self.partitioner)}),
        }

    def with_access(self, properties: Mapping[str, Any]) -> KafkaSink:
        return copy_with_access(self, properties)

    def open_writer(self, context: SubtaskContext) -> SinkWriter:
        leave_to_driver()
        config = self._config(context, context.subtask)
        client = SubtaskClient.of(context, config.bootstrap_servers, self.properties)
        return self.writers[self.delivery_guarantee](
            config, self.output(BrokerTopics(client, client.identity, self.properties)), client
        )

    def open_committer(self, context: JobContext) -> Committer:
        return self.committers[self.delivery_guarantee](self._config(context, DRIVER), self.outputs, self.new_topics)

    def check_splits(self, context: JobContext, splits: Sequence[Split]) -> None:
        """A topic that a function chooses is only known with the record: the writer refuses that."""
        self.check_serdes()
        if self.partitioner != SOURCE or not splits:
            return
        needed = max(split.partition for split in splits) + 1
        config = self._config(context, DRIVER)
        with LeaderClient(config.bootstrap_servers, config.properties) as client:
            found = call_with_retry(lambda: client.topics(self.outputs), TOPICS_BUDGET_SECONDS)
        for topic, info in found.items():
            if info.partitions < needed:
                raise ConfigurationError(too_few(topic, info.partitions, needed))

    def read_by(self, source: Source) -> str | None:
        if not isinstance(source, KafkaSource) or not same_brokers(source.bootstrap_servers, self.bootstrap_servers):
            return None
        return next(filter(source.reads, self.outputs), None)

    def refuse_inputs(self, context: JobContext, splits: Sequence[Split]) -> None:
        """The names say nothing where the clusters may be two, or one under two names: topics' ids do."""
        alike = {input_of(split.id): split for split in splits if input_of(split.id) in self.outputs}
        if not alike:
            return
        config = self._config(context, DRIVER)
        with LeaderClient(config.bootstrap_servers, config.properties) as client:
            found = call_with_retry(lambda: client.topics(tuple(alike)), TOPICS_BUDGET_SECONDS)
        for topic, split in alike.items():
            if topic in found and found[topic].topic_id == PartitionSplit.from_split(split).topic_id:
                raise ConfigurationError(reads_own_output(context.job, split.source, topic))

    def check_serdes(self) -> None:
        """Open them for the topics that are known, as the writers will: one that can't work there says so."""
        TopicSerdes(self.key, self.value, self.outputs, writing=True).close()

    def output(self, topics: OutputTopics) -> TopicOutput:
        """The output of this sink on a subtask: several sinks that share a producer share what it knows."""
        return TopicOutput(self.topic, self.partitioner, self.key, self.value, topics)

    def shared_transaction(self, context: JobContext) -> SharedTransaction | None:
        return self.sharing[self.delivery_guarantee](self._config(context, DRIVER))

    def watched(self, context: JobContext) -> AbstractContextManager[object]:
        warn_of_internal_topics(self.outputs, "written to")
        return watched(bootstrap_servers_of(self.bootstrap_servers, context.settings), self.properties)

    def _config(self, context: JobContext, subtask: SubtaskIndex) -> WriterConfig:
        return WriterConfig(
            prefix=self.transactional_id_prefix or context.job,
            subtask=subtask,
            attempt=context.attempt,
            settings=context.settings,
            bootstrap_servers=bootstrap_servers_of(self.bootstrap_servers, context.settings),
            properties=self.properties,
        )


def _named(given: Any) -> str:
    return given if isinstance(given, str) else getattr(given, "__name__", "a function")


def _guarantee(name: str | DeliveryGuarantee) -> DeliveryGuarantee:
    try:
        return DeliveryGuarantee(name)
    except ValueError:
        choices = ", ".join(repr(item.value) for item in DeliveryGuarantee)
        raise ConfigurationError(f"delivery_guarantee must be one of {choices}, not {name!r}") from None
