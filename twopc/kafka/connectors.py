"""The connectors of a job that are Kafka's, and the cluster of each: for tools that judge, drill or measure a job."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any

from twopc.config import RunSettings
from twopc.errors import ConfigurationError
from twopc.graph import JobDefinition
from twopc.kafka.clients.access import access_of
from twopc.kafka.clients.cluster import Cluster
from twopc.kafka.sink import KafkaSink
from twopc.kafka.source import KafkaSource
from twopc.kafka.topics.preflight import bootstrap_servers_of
from twopc.listing import listed
from twopc.source import Source


@dataclass(frozen=True, slots=True)
class KafkaConnectors:
    """Sources and sinks by operator id, and what stands `elsewhere`: neither KafkaSource nor KafkaSink.

    Of a topic of the job's own (`key_by`) both source and sink are there, and `own` has the sink of each such source.
    Sources that only broadcast tables are made of are `broadcasts`, and nothing else.
    """

    sources: Mapping[str, KafkaSource]
    sinks: Mapping[str, KafkaSink]
    elsewhere: Mapping[str, str]
    own: Mapping[str, str] = field(default_factory=dict)
    broadcasts: Mapping[str, KafkaSource] = field(default_factory=dict)

    @classmethod
    def of(cls, definition: JobDefinition) -> KafkaConnectors:
        sources, broadcasts = _kafka_sources(definition.sources), _kafka_sources(definition.broadcasts)
        sinks = {key: sink for key, sink in definition.sinks.items() if isinstance(sink, KafkaSink)}
        known = sources.keys() | broadcasts.keys() | sinks.keys()
        others = {key: type(end).__name__ for key, end in definition.ends.items() if key not in known}
        own = {
            operator.id: operator.behind
            for operator in definition.operators
            if operator.behind is not None and operator.id in sources
        }
        return cls(sources, sinks, others, own, broadcasts)

    @classmethod
    def only(cls, definition: JobDefinition, done: str) -> KafkaConnectors:
        """Raise ConfigurationError, as the job can't be `done`, where it has others."""
        connectors = cls.of(definition)
        if connectors.elsewhere:
            others = listed(f"{key!r} is a {kind}" for key, kind in connectors.elsewhere.items())
            raise ConfigurationError(
                f"job {definition.name!r} can't be {done}: it must read with KafkaSource and write with KafkaSink, "
                f"but {others}"
            )
        refuse_pattern(connectors.sources, done)
        return connectors

    @property
    def inputs(self) -> dict[str, KafkaSource]:
        """The sources of what others write."""
        return {key: source for key, source in self.sources.items() if key not in self.own}

    @property
    def outputs(self) -> dict[str, KafkaSink]:
        """The sinks of what others read."""
        return {key: sink for key, sink in self.sinks.items() if key not in self.own.values()}

    @property
    def topics(self) -> tuple[str, ...]:
        """The topics that are read, those of the job's own too."""
        return tuple(dict.fromkeys(topic for source in self.sources.values() for topic in source.topics))

    def scratch_inputs(self, name: str) -> dict[str, str]:
        """Return a topic of this name for each source of what others write: no two sources share one."""
        return _numbered(f"{name}-in", {key: key for key in self.inputs})

    def scratch_outputs(self, name: str) -> dict[str, str]:
        """Return a topic of this name for each sink: those that write to one topic share one here too.

        A sink that chooses a topic for each record has one topic. Who reads a topic of the job's own reads that of its
        sink.
        """
        places = {
            key: (sink.bootstrap_servers, sink.topic if isinstance(sink.topic, str) else (key,))
            for key, sink in self.sinks.items()
        }
        return _numbered(f"{name}-out", places)

    def scratch_prefixes(self, name: str) -> dict[str, str]:
        """Return a transactional prefix of this name for each sink: those of one cluster and prefix share one."""
        return _numbered(
            name, {key: (sink.bootstrap_servers, sink.transactional_id_prefix) for key, sink in self.sinks.items()}
        )


def refuse_broadcasts(definition: JobDefinition, done: str) -> None:
    """Raise ConfigurationError, as the job can't be `done`, where subtasks look into broadcast tables."""
    if definition.broadcasts:
        raise ConfigurationError(
            f"job {definition.name!r} can't be {done}: what it makes depends on when each subtask read "
            f"{listed(definition.broadcasts)}, for a broadcast table, which no scratch run repeats: test it with "
            "twopc.testing.MemoryRun"
        )


def refuse_pattern(sources: Mapping[str, KafkaSource], done: str) -> None:
    """Raise ConfigurationError, as the job can't be `done`, where a source does not name its topics."""
    for key, source in sources.items():
        if source.pattern is not None:
            raise ConfigurationError(
                f"the job can't be {done}: which topics {key!r} reads, the pattern {source.pattern} says at each "
                "start: give it topics in the pattern's place"
            )


def _kafka_sources(sources: Mapping[str, Source]) -> dict[str, KafkaSource]:
    return {key: source for key, source in sources.items() if isinstance(source, KafkaSource)}


def _numbered(name: str, places: Mapping[str, Hashable]) -> dict[str, str]:
    """Return the name for the first place, and the name with its number for every other."""
    numbers = {place: number for number, place in enumerate(dict.fromkeys(places.values()), 1)}
    return {key: name if numbers[place] == 1 else f"{name}-no{numbers[place]}" for key, place in places.items()}


def cluster_of(end: KafkaSource | KafkaSink, settings: RunSettings, access: Mapping[str, Any]) -> Cluster:
    """Return the cluster of a source or sink, as a consumer gets at it; `access` stands before the job's own."""
    properties = access_of(end.properties) if isinstance(end, KafkaSink) else end.properties
    return Cluster(bootstrap_servers_of(end.bootstrap_servers, settings), {**properties, **access})
