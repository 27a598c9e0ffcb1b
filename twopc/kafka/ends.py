"""The ends of a job that are Kafka's, and on which cluster each is: for whoever judges, drills or measures a job."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any

from twopc.config import RunSettings
from twopc.errors import ConfigurationError
from twopc.graph import JobDefinition
from twopc.kafka.access import access_of
from twopc.kafka.cluster import Cluster
from twopc.kafka.preflight import bootstrap_servers_of
from twopc.kafka.sink import KafkaSink
from twopc.kafka.source import KafkaSource
from twopc.listing import listed


@dataclass(frozen=True, slots=True)
class KafkaEnds:
    """Sources and sinks by operator id, and what stands `elsewhere`: neither KafkaSource nor KafkaSink."""

    sources: Mapping[str, KafkaSource]
    sinks: Mapping[str, KafkaSink]
    elsewhere: Mapping[str, str]

    @classmethod
    def of(cls, definition: JobDefinition) -> KafkaEnds:
        ends = definition.ends
        sources = {key: each for key, each in ends.items() if isinstance(each, KafkaSource)}
        sinks = {key: each for key, each in ends.items() if isinstance(each, KafkaSink)}
        others = {key: type(each).__name__ for key, each in ends.items() if key not in sources and key not in sinks}
        return cls(sources, sinks, others)

    @classmethod
    def only(cls, definition: JobDefinition, done: str) -> KafkaEnds:
        """Raise ConfigurationError, as the job can't be `done`, where it has others."""
        ends = cls.of(definition)
        if ends.elsewhere:
            others = listed(f"{key!r} is a {kind}" for key, kind in ends.elsewhere.items())
            raise ConfigurationError(
                f"job {definition.name!r} can't be {done}: it must read with KafkaSource and write with KafkaSink, "
                f"but {others}"
            )
        refuse_pattern(ends.sources, done)
        return ends

    @property
    def topics(self) -> tuple[str, ...]:
        """The topics that are read."""
        return tuple(dict.fromkeys(topic for source in self.sources.values() for topic in source.topics))

    def source_of(self, topic: str) -> KafkaSource | None:
        """Return the source that reads a topic; no two of a job read one."""
        return next((source for source in self.sources.values() if topic in source.topics), None)

    def scratch_inputs(self, name: str) -> dict[str, str]:
        """Return a topic of this name for each source: no two sources share one."""
        return _numbered(f"{name}-in", {key: key for key in self.sources})

    def scratch_outputs(self, name: str) -> dict[str, str]:
        """Return a topic of this name for each sink: those that write to one topic share one here too.

        A sink that chooses a topic for each record has one topic.
        """
        places = {
            key: (each.bootstrap_servers, each.topic if isinstance(each.topic, str) else (key,))
            for key, each in self.sinks.items()
        }
        return _numbered(f"{name}-out", places)

    def scratch_prefixes(self, name: str) -> dict[str, str]:
        """Return a transactional prefix of this name for each sink: those of one cluster and prefix share one."""
        return _numbered(
            name, {key: (each.bootstrap_servers, each.transactional_id_prefix) for key, each in self.sinks.items()}
        )


def refuse_pattern(sources: Mapping[str, KafkaSource], done: str) -> None:
    """Raise ConfigurationError, as the job can't be `done`, where a source does not name its topics."""
    for key, source in sources.items():
        if source.pattern is not None:
            raise ConfigurationError(
                f"the job can't be {done}: which topics {key!r} reads, the pattern {source.pattern} says at each "
                "start: give it topics in the pattern's place"
            )


def _numbered(name: str, places: Mapping[str, Hashable]) -> dict[str, str]:
    """Return the name for the first place, and the name with its number for every other."""
    numbers = {place: number for number, place in enumerate(dict.fromkeys(places.values()), 1)}
    return {key: name if numbers[place] == 1 else f"{name}-no{numbers[place]}" for key, place in places.items()}


def cluster_of(end: KafkaSource | KafkaSink, settings: RunSettings, access: Mapping[str, Any]) -> Cluster:
    """Return the cluster of a source or sink, as a consumer gets at it; `access` stands before the job's own."""
    properties = access_of(end.properties) if isinstance(end, KafkaSink) else end.properties
    return Cluster(bootstrap_servers_of(end.bootstrap_servers, settings), {**properties, **access})
