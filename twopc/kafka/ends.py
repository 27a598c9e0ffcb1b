"""The ends of a job that are Kafka's, and on which cluster each is: for whoever judges, drills or measures a job."""

from __future__ import annotations

from collections.abc import Mapping
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
        return ends

    @property
    def topics(self) -> tuple[str, ...]:
        """The topics that are read."""
        return tuple(dict.fromkeys(topic for source in self.sources.values() for topic in source.topics))

    def source_of(self, topic: str) -> KafkaSource | None:
        """Return the source that reads a topic; no two of a job read one."""
        return next((source for source in self.sources.values() if topic in source.topics), None)


def cluster_of(end: KafkaSource | KafkaSink, settings: RunSettings, access: Mapping[str, Any]) -> Cluster:
    """Return the cluster of a source or sink, as a consumer gets at it; `access` stands before the job's own."""
    properties = access_of(end.properties) if isinstance(end, KafkaSink) else end.properties
    return Cluster(bootstrap_servers_of(end.bootstrap_servers, settings), {**properties, **access})
