"""The job that is drilled: its graph, and on which cluster each of its sources, sinks and transaction groups is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

from twopc.config import RunSettings
from twopc.context import JobContext
from twopc.errors import ConfigurationError
from twopc.graph import JobDefinition
from twopc.kafka.clients.cluster import Cluster
from twopc.kafka.clients.control_client import TopicInfo
from twopc.kafka.clients.retry import call_with_retry
from twopc.kafka.connectors import KafkaConnectors, cluster_of, refuse_broadcasts
from twopc.kafka.input.topic_reader import Ranges, ranges_of
from twopc.kafka.positions.offset_status import OffsetStatus, Readability, offset_statuses
from twopc.kafka.positions.partition_position import PartitionPosition
from twopc.kafka.sink import DeliveryGuarantee
from twopc.kafka.topic_partition import TopicPartition
from twopc.protocol.facts import Committable
from twopc.protocol.ids import AttemptId
from twopc.verify.paths import Paths

PATIENCE_SECONDS = 30.0

_WEAKEST_LAST = (DeliveryGuarantee.EXACTLY_ONCE, DeliveryGuarantee.AT_LEAST_ONCE, DeliveryGuarantee.NONE)


@dataclass(frozen=True)
class DrillJob:
    """Its sources and sinks are Kafka's, all of them; `inputs` and `outputs` are their clusters, by operator id.

    Each cluster has topics of other names: which topic is meant is known by its name alone.
    """

    definition: JobDefinition
    settings: RunSettings
    connectors: KafkaConnectors
    paths: Paths = field(repr=False)
    inputs: Mapping[str, Cluster]
    outputs: Mapping[str, Cluster]

    @classmethod
    def of(cls, definition: JobDefinition, settings: RunSettings, access: Mapping[str, Any]) -> DrillJob:
        """Raise ConfigurationError for a job that can't be drilled."""
        connectors = KafkaConnectors.only(definition, "drilled")
        refuse_broadcasts(definition, "drilled")
        inputs = {key: cluster_of(source, settings, access) for key, source in connectors.sources.items()}
        outputs = {key: cluster_of(each, settings, access) for key, each in connectors.sinks.items()}
        servers: dict[str, set[str]] = {}
        for key, sink in connectors.sinks.items():
            for topic in sink.outputs:
                servers.setdefault(topic, set()).add(outputs[key].servers)
        if twice := [topic for topic, every in servers.items() if len(every) > 1]:
            raise ConfigurationError(
                f"job {definition.name!r} can't be drilled: it writes to topics named {twice[0]!r} of two clusters, "
                "and what is found could not be told apart"
            )
        return cls(definition, settings, connectors, Paths.of(definition), inputs, outputs)

    @property
    def name(self) -> str:
        return self.definition.name

    @property
    def own_topics(self) -> frozenset[str]:
        """The topics that it reads and writes itself (`key_by`)."""
        return frozenset(topic for key in self.connectors.own for topic in self.connectors.sources[key].topics)

    @property
    def left_out(self) -> tuple[str, ...]:
        """The output that can't be worked out, and why."""
        blind = self.paths.undetermined
        return tuple(
            f"what {key!r} writes is not judged: {blind[key]}" for key in self.connectors.sinks if key in blind
        )

    def is_judged(self, sink: str) -> bool:
        """Whether what it writes can be worked out."""
        return sink not in self.paths.undetermined

    def is_judged_topic(self, topic: str) -> bool:
        """Whether that can be said of all sinks that may write to the topic."""
        return all(self.is_judged(sink) for sink in self.writers(topic))

    def is_known(self, sink: str) -> bool:
        """Whether what the real job wrote with a sink can be worked out, too, and not only what a drill does.

        Where inputs met, they did so in the order of their times only if each record was there when its turn came.
        """
        return self.is_judged(sink) and sink not in self.paths.by_time

    def is_known_topic(self, topic: str) -> bool:
        """Whether that can be said of all sinks that may write to the topic."""
        return all(self.is_known(sink) for sink in self.writers(topic))

    @property
    def unknown(self) -> tuple[str, ...]:
        """What the real job wrote that can't be worked out, and why."""
        met = {key: self.paths.by_time[key] for key in self.connectors.sinks if key in self.paths.by_time}
        return (
            *self.left_out,
            *(
                f"what {key!r} wrote is made of {inputs}, which may have met in another order than that of their times"
                for key, inputs in met.items()
                if self.is_judged(key)
            ),
        )

    def writers(self, topic: str) -> list[str]:
        """Return the sinks that may write to the topic: one that chooses it for each record may write to any."""
        return [key for key, sink in self.connectors.sinks.items() if topic in sink.outputs or not sink.outputs]

    def input_topics(self) -> dict[str, TopicInfo]:
        """Ask for the topics that are read; those that are not there are left out."""
        topics: dict[str, TopicInfo] = {}
        for key, cluster in self.inputs.items():
            with cluster.client() as client:
                topics |= call_with_retry(partial(client.topics, self.connectors.sources[key].topics), PATIENCE_SECONDS)
        return topics

    def input_ranges(self) -> Ranges:
        """Ask where the input begins and ends."""
        ranges: Ranges = {}
        for key, cluster in self.inputs.items():
            with cluster.client() as client:
                ranges = {**ranges, **ranges_of(client, client.topics(self.connectors.sources[key].topics))}
        return ranges

    def offset_statuses(self, held: Sequence[PartitionPosition]) -> list[OffsetStatus]:
        """Ask how these positions stand to what the brokers have of their topics, in order."""
        statuses: dict[TopicPartition, OffsetStatus] = {}
        for key, cluster in self.inputs.items():
            own = [position for position in held if position.partition.topic in self.connectors.sources[key].topics]
            with cluster.client() as client:
                found = call_with_retry(partial(offset_statuses, client, own), PATIENCE_SECONDS)
            statuses |= {status.partition: status for status in found}
        return [
            statuses.get(position.partition, OffsetStatus(position.partition, Readability.GONE)) for position in held
        ]

    @cached_property
    def groups(self) -> Mapping[str, tuple[str, ...]]:
        """The sinks of each transaction group, by its id. Where there are several, the brokers are asked."""
        if len(self.connectors.sinks) == 1:
            return {"": tuple(self.connectors.sinks)}
        context = JobContext(self.name, AttemptId(0), 1, self.settings)
        return {group.id: group.sinks for group in self.definition.sink.groups(context)}

    def sinks_of(self, item: Committable) -> tuple[str, ...]:
        """Return the sinks that wrote a committable; where there is one group, it is of that one, as a run has it."""
        if len(self.groups) == 1:
            return next(iter(self.groups.values()))
        if item.group not in self.groups:
            raise ConfigurationError(
                f"the checkpoint has output of {item.group!r}, and job {self.name!r} has no such sink: drill it with "
                "the sinks that it had"
            )
        return self.groups[item.group]

    def cluster_of(self, item: Committable) -> Cluster:
        """Return where a committable was written."""
        return self.outputs[self.sinks_of(item)[0]]

    def guarantee(self, topic: str) -> DeliveryGuarantee:
        """Return the weakest that a sink promises which may write to the topic."""
        promised = [self.connectors.sinks[key].delivery_guarantee for key in self.writers(topic)]
        return max(promised, key=_WEAKEST_LAST.index)
