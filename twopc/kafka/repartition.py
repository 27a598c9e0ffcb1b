"""The topic of a job's own that a `key_by` goes through: who writes it, who reads it, and the form of its keys."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any

from confluent_kafka import Consumer

from twopc.column import ColumnError
from twopc.config import RunSettings
from twopc.context import JobContext
from twopc.errors import ConfigurationError
from twopc.kafka.clients.access import access_of
from twopc.kafka.clients.control_client import ControlClient
from twopc.kafka.clients.retry import call_with_retry
from twopc.kafka.clients.topic_client import TopicClient
from twopc.kafka.input.reader import END_SECONDS, KafkaReader
from twopc.kafka.input.startup_modes import GroupOffsets, StartingOffsets, StartupMode
from twopc.kafka.output.topic_output import TopicOutput
from twopc.kafka.positions.partition_position import oldest
from twopc.kafka.registry.serde import RegistrySerde
from twopc.kafka.repartition_planner import RepartitionPlanner
from twopc.kafka.sink import TOPICS_BUDGET_SECONDS, DeliveryGuarantee, KafkaSink
from twopc.kafka.source import KafkaSource
from twopc.kafka.topic_partition import Position, TopicPartition
from twopc.kafka.topics.new_topic import NewTopics
from twopc.kafka.topics.output_topics import OutputTopics
from twopc.kafka.topics.partitioner import AS_WRITTEN_ELSEWHERE
from twopc.kafka.topics.preflight import bootstrap_servers_of, require_topics
from twopc.kafka.topics.topic_limits import CLEANUP
from twopc.protocol.facts import SplitPosition
from twopc.record import Batch
from twopc.repartition import Repartition, RepartitionConnectors
from twopc.serde import Json, Serde
from twopc.sink import Sink
from twopc.source import Source
from twopc.state.key_form import MARK, key_bytes
from twopc.time_marks import as_read

BY_MURMUR2 = ("murmur2", "murmur2_random")

TOPIC_SETTINGS = {
    CLEANUP: "delete",
    "retention.ms": "-1",
    "retention.bytes": "-1",
    "segment.bytes": str(50 << 20),
    "message.timestamp.type": "CreateTime",
    "message.timestamp.before.max.ms": str(2**63 - 1),
    "message.timestamp.after.max.ms": str(2**63 - 1),
}
"""Nothing is deleted but by the job itself, and event times are kept, however far from now."""

log = logging.getLogger(__name__)


class RepartitionKey(Serde):
    """Keys that come back as they were: text, bytes, or a value of JSON (a tuple comes back as a list).

    Text is written as it is, in UTF-8. A value of JSON stands behind a mark that is in no text, bytes behind two.
    """

    def serialize(self, value: Any) -> bytes | None:
        if isinstance(value, bytes):
            return MARK + MARK + value
        return None if value is None else key_bytes(value)

    def deserialize(self, data: bytes | None) -> Any:
        if data is None or not data.startswith(MARK):
            return None if data is None else data.decode()
        return data[2:] if data.startswith(MARK + MARK) else Json().deserialize(data[1:])


class RepartitionValue(Json):
    """JSON, chosen because nobody said in what form values go through: what it can't write is told how to go, too."""

    def serialize_all(self, column: list[Any]) -> list[bytes | None]:
        try:
            return super().serialize_all(column)
        except ColumnError as error:
            problem = f"{error.cause}: key_by writes JSON unless it is given another serde: give it one, as value=..."
            raise ColumnError(error.index, TypeError(problem), error.results) from error.cause

    def __repr__(self) -> str:
        return "Json()"


class RepartitionSink(KafkaSink):
    """Writes records by their new keys; always exactly once, in the transaction of the job's other sinks.

    `inputs` are the sources whose records come here: the topic gets as many partitions as theirs, unless `partitions`
    says how many.
    """

    def __init__(
        self,
        topic: str,
        *,
        key: Serde | None,
        value: Serde,
        inputs: Sequence[KafkaSource],
        partitions: int | None,
        bootstrap_servers: str | None,
        properties: Mapping[str, Any],
    ) -> None:
        super().__init__(
            topic,
            key=RepartitionKey() if key is None else key,
            value=value,
            bootstrap_servers=bootstrap_servers,
            properties=properties,
        )
        self.partitioner = AS_WRITTEN_ELSEWHERE if key is None else None
        self.inputs = tuple(inputs)
        self.partitions = partitions

    def with_access(self, properties: Mapping[str, Any]) -> RepartitionSink:
        sink = copy(self)
        sink.properties = super().with_access(properties).properties
        sink.inputs = tuple(source.with_access(properties) for source in self.inputs)
        return sink

    def beside(self, others: Sequence[Sink]) -> RepartitionSink:
        """Write into the transaction of the first of the others that has one, where it names the same brokers."""
        sink = copy(self)
        for other in others:
            if (
                isinstance(other, KafkaSink)
                and other.delivery_guarantee is DeliveryGuarantee.EXACTLY_ONCE
                and other.bootstrap_servers == self.bootstrap_servers
            ):
                sink.properties, sink.transactional_id_prefix = other.properties, other.transactional_id_prefix
                break
        if (partitioner := sink.properties.get("partitioner", BY_MURMUR2[0])) not in BY_MURMUR2:
            raise ConfigurationError(
                f"key_by writes to {self.topic!r} with the producer of the job's sinks, whose properties say "
                f"partitioner={partitioner!r}: its keys need murmur2. Give the sink partitioner= a function, which "
                "chooses for that sink alone"
            )
        return sink

    def output(self, topics: OutputTopics) -> TopicOutput:
        output = super().output(topics)
        output.own_topic = self.outputs[0]
        return output

    @property
    def new_topics(self) -> NewTopics:
        return {topic: RepartitionTopic(self.inputs, self.partitions) for topic in self.outputs}


class RepartitionReader(KafkaReader):
    """Reads what the job itself has written.

    It is told to end when all that is committed, but brokers may show that a moment later: so it reads to the end that
    each partition has with what is open, which comes to an end too.
    """

    def poll(self, timeout: float, most: int) -> Batch | None:
        batch = super().poll(timeout, most)
        return None if batch is None else as_read(batch)

    def _ends(self, consumer: Consumer, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, Position]:
        client = self._client
        assert client is not None, "a reader of a job's own topic has its subtask's client"
        return call_with_retry(lambda: client.high_watermarks(partitions), END_SECONDS)


class RepartitionSource(KafkaSource):
    """Reads the topic, from where the group stands or the first record; the partitions are those that it has."""

    reader = RepartitionReader
    planner = RepartitionPlanner
    has_marks = True

    def forget(self, context: JobContext, kept: Sequence[SplitPosition]) -> None:
        needed = oldest(kept)
        servers = bootstrap_servers_of(self.bootstrap_servers, context.settings)
        with TopicClient(servers, self.properties) as client:
            now = client.topics({each.topic for each in needed})
            client.delete_records(
                {
                    partition: held.position
                    for partition, held in needed.items()
                    # A topic that was made again since has other records at these offsets.
                    if held.position > 0 and partition.topic in now and now[partition.topic].topic_id == held.topic_id
                }
            )


@dataclass(frozen=True, slots=True)
class RepartitionTopic:
    """The topic as it has to be: of so many `partitions`, or, where None, of as many as the inputs have at most.

    One that is there already may have another number, where none was asked for: what is written there stays as it is.
    """

    inputs: tuple[KafkaSource, ...]
    partitions: int | None

    def ensure(self, name: str, client: TopicClient, settings: RunSettings) -> None:
        """Create the topic, if it isn't there; refuse one that does not keep all records, or is not as asked for."""
        found = call_with_retry(lambda: client.topics([name]), TOPICS_BUDGET_SECONDS).get(name)
        if found is not None:
            stored = call_with_retry(lambda: client.settings_of(name, [CLEANUP]), TOPICS_BUDGET_SECONDS)
            self._check(name, found.partitions, stored[CLEANUP])
            return
        partitions = self.partitions or self._most(settings)
        if client.ensure_topic(name, partitions, settings=TOPIC_SETTINGS):
            log.info("topic %r of the job's own was not there: created, with %d partitions", name, partitions)

    def _check(self, name: str, partitions: int, cleanup: str | None) -> None:
        if self.partitions not in (None, partitions):
            raise ConfigurationError(
                f"topic {name!r} of the job's own has {partitions} partitions, but its key_by says "
                f"partitions={self.partitions}. State by key behind it belongs to the partitions as they are: leave "
                "them so, or give the key_by another name, which begins with a topic and states of its own once all of "
                "this one is read (stop the job with --drain)"
            )
        if cleanup is not None and "compact" in cleanup:
            raise ConfigurationError(
                f"topic {name!r} of the job's own has {CLEANUP}={cleanup}, which deletes records of a key before they "
                f"are read: set {CLEANUP}=delete (kafka-configs.sh --alter --entity-type topics --entity-name {name})"
            )

    def _most(self, settings: RunSettings) -> int:
        return max((count for source in self.inputs for count in _partitions(source, settings)), default=1)


def _partitions(source: KafkaSource, settings: RunSettings) -> list[int]:
    """Ask how many partitions each of a source's topics has."""
    servers = bootstrap_servers_of(source.bootstrap_servers, settings)
    with ControlClient(servers, source.properties) as client:

        def ask() -> list[int]:
            names = source.topics if source.pattern is None else source.pattern.among(client.topic_names())
            require_topics(client, tuple(names), "input")
            return [info.partitions for info in client.topics(names).values()]

        return call_with_retry(ask, TOPICS_BUDGET_SECONDS)


def repartitioned(source: KafkaSource, through: Repartition) -> RepartitionConnectors:
    """Return the ends of a topic on the cluster of this source."""
    inputs = [each for each in through.sources if isinstance(each, KafkaSource)]
    value = through.value or _common_serde(through.sources if through.unchanged else ()) or RepartitionValue()
    sink = RepartitionSink(
        through.name,
        key=through.key,
        value=value,
        inputs=inputs,
        partitions=through.partitions,
        bootstrap_servers=source.bootstrap_servers,
        properties=access_of(source.properties),
    )
    behind = RepartitionSource(
        through.name,
        key=sink.key,
        value=value,
        group_id=source.group_id,
        bootstrap_servers=source.bootstrap_servers,
        properties=source.properties,
        start=_start(inputs),
    )
    return RepartitionConnectors(sink, behind)


def _start(inputs: Sequence[KafkaSource]) -> StartupMode:
    """Return where to begin without a checkpoint: where the inputs go on, so does what was made of them.

    What an input makes that is read anew from elsewhere comes again, behind all that is left of before.
    """
    goes_on = all(isinstance(source.start, GroupOffsets) for source in inputs)
    return StartingOffsets.group_offsets() if goes_on else StartingOffsets.latest()


def _common_serde(sources: Sequence[Source]) -> Serde | None:
    """Return the serde of all values; None where there is no such one."""
    serdes = [source.value if isinstance(source, KafkaSource) else None for source in sources]
    if not serdes or serdes[0] is None:
        return None
    if not all(_are_same(serdes[0], serde) for serde in serdes):
        return None
    return serdes[0].unregistered() if isinstance(serdes[0], RegistrySerde) else serdes[0]


def _are_same(one: Serde, other: Serde | None) -> bool:
    return one is other or (type(one) is type(other) and vars(one) == vars(other))
