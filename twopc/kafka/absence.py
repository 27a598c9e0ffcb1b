"""Every topic that a job names and that isn't there: a start that lacks one is refused once for all of them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from twopc.config import RunSettings
from twopc.graph import JobDefinition
from twopc.kafka.connectors import KafkaConnectors, cluster_of
from twopc.kafka.sink import KafkaSink
from twopc.kafka.source import KafkaSource
from twopc.kafka.topics.preflight import TopicsMissing, missing_topics


@contextmanager
def naming_every_absence(definition: JobDefinition, settings: RunSettings) -> Iterator[None]:
    """Where the context ends as one topic is missing, have its error name all that are."""
    try:
        yield
    except TopicsMissing as error:
        raise _all_missing(definition, settings) or error from None


def _all_missing(definition: JobDefinition, settings: RunSettings) -> TopicsMissing | None:
    """Ask every cluster for the topics that the job names there; return the error that names all that are missing.

    Topics that the start makes are not among them.
    """
    connectors = KafkaConnectors.of(definition)
    named: list[tuple[str, KafkaSource | KafkaSink, tuple[str, ...]]]
    named = [("input", end, end.topics) for end in (*connectors.inputs.values(), *connectors.broadcasts.values())]
    named += [("output", end, end.outputs) for end in connectors.outputs.values() if not end.new_topics]
    clusters: dict[str, dict[str, list[str]]] = {}
    for role, end, topics in named:
        cluster = cluster_of(end, settings, {})
        roles = clusters.setdefault(cluster.servers, {})
        with cluster.client() as client:
            found = client.topics(topics)
        if missing := [topic for topic in topics if topic not in found and topic not in roles.get(role, ())]:
            roles.setdefault(role, []).extend(missing)
    parts = [
        missing_topics(roles, servers if len(clusters) > 1 else "") for servers, roles in clusters.items() if roles
    ]
    return TopicsMissing("; ".join(parts)) if parts else None
