"""A job on other topics: the same graph, steps and serdes, another name, its own inputs and outputs.

All other names follow from that of the job.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping

from twopc.errors import ConfigurationError
from twopc.graph import JobDefinition
from twopc.job import Job
from twopc.kafka.connectors import KafkaConnectors
from twopc.kafka.input.startup_modes import StartingOffsets
from twopc.kafka.repartition import RepartitionSink
from twopc.kafka.sink import KafkaSink
from twopc.kafka.source import KafkaSource
from twopc.loader.job_loader import load_job
from twopc.scratch.own_topic import kept_source

Topics = Mapping[str, str]
"""Topics of sources and sinks, by operator id."""


def rebound(spec: str, *, name: str, topics: Topics | None = None) -> Job:
    """Return the job of a job file, under another name and on topics of that name, or those that are given.

    Every input is read from its start. Raises ConfigurationError for a job that is not from Kafka to Kafka.
    """
    return Job.of(rebound_definition(load_job(spec), name, "benchmarked", topics))


def rebound_definition(definition: JobDefinition, name: str, done: str, topics: Topics | None = None) -> JobDefinition:
    """Return the job on the topics `scratch_inputs(name)` and `scratch_outputs(name)` of its connectors, or on others.

    What a broadcast table is made of is read where it is.
    """
    connectors, topics = KafkaConnectors.only(definition, done), topics or {}
    _refuse_opened(connectors, done)
    sources: dict[str, KafkaSource] = {}
    for key, topic in connectors.scratch_inputs(name).items():
        reads = copy.copy(connectors.sources[key])
        reads.inputs, reads.group_id = (topics.get(key, topic),), None
        reads.start, reads.bootstrap_servers = StartingOffsets.earliest(), None
        sources[key] = reads
    outputs = {key: topics.get(key, topic) for key, topic in connectors.scratch_outputs(name).items()}
    prefixes = connectors.scratch_prefixes(name)
    sinks: dict[str, KafkaSink] = {}
    for key, topic in outputs.items():
        writes = copy.copy(connectors.sinks[key])
        writes.topic, writes.bootstrap_servers = topic, None
        writes.transactional_id_prefix = prefixes[key]
        if isinstance(writes, RepartitionSink):
            # All scratch inputs have the same number of partitions.
            writes.inputs = tuple(sources.values())
        sinks[key] = writes
    own = {
        key: kept_source(connectors.sources[key], outputs[sink], group=None, servers=None)
        for key, sink in connectors.own.items()
    }
    return definition.replaced({**sources, **sinks, **own}, name)


def _refuse_opened(connectors: KafkaConnectors, done: str) -> None:
    used = [(key, serde) for key, end in connectors.sources.items() for serde in (end.key, end.value)]
    used += [(key, serde) for key, end in connectors.sinks.items() for serde in (end.key, end.value)]
    for key, serde in used:
        if serde.must_be_opened:
            raise ConfigurationError(
                f"the job can't be {done}: {key!r} has {serde!r}, which knows no schema of a topic made for that. "
                "Give it Avro(schema), Json() or Protobuf(message) in a copy of the job"
            )
