"""The plan of a verification, as a value that is checked when it is made."""

from __future__ import annotations

import copy
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from twopc.config import MAX_TIME_AHEAD_MS, RunSettings
from twopc.errors import ConfigurationError
from twopc.graph import JobDefinition
from twopc.job import Job
from twopc.kafka.clients.cluster import Cluster
from twopc.kafka.connectors import KafkaConnectors, cluster_of, refuse_pattern
from twopc.kafka.sink import KafkaSink
from twopc.kafka.source import KafkaSource
from twopc.listing import listed
from twopc.port import Port
from twopc.verify.judge import EXAMPLES
from twopc.verify.paths import Paths


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifyPlan:
    """The topics that are compared, and the job by which they are.

    outputs: the topics that are judged, with the cluster of each.
    left_out: what of the job's output is not judged, and why.
    running: the job may still be running: the output has to be there up to the positions that its groups committed.
    drained: the job was drained when it had read the input, so what waited for its time has come out.
    committed: judge what a read_committed reader sees; otherwise what a read_uncommitted one sees.
    examples: so many findings are shown of each kind.
    max_time_ahead_ms: the setting of the job's runs; it counts from the clock of now.
    """

    job: str
    paths: Paths = field(repr=False)
    sources: Mapping[str, KafkaSource]
    inputs: Mapping[str, Cluster]
    outputs: Mapping[str, Cluster]
    left_out: tuple[str, ...] = ()
    running: bool = False
    drained: bool = False
    committed: bool = True
    examples: int = EXAMPLES
    max_time_ahead_ms: int = MAX_TIME_AHEAD_MS

    def __post_init__(self) -> None:
        if self.examples < 1:
            raise ConfigurationError(f"--examples must be at least 1, but is {self.examples}")
        if self.running and self.drained:
            raise ConfigurationError("a drain ends the job: say --drained or --running, not both")

    def without(self, sources: Collection[str], outputs: Collection[str], left_out: Sequence[str]) -> VerifyPlan:
        """Return the plan that neither reads these sources nor judges these topics, and says why."""
        return replace(
            self,
            sources={key: source for key, source in self.sources.items() if key not in sources},
            inputs={key: cluster for key, cluster in self.inputs.items() if key not in sources},
            outputs={topic: output for topic, output in self.outputs.items() if topic not in outputs},
            left_out=(*self.left_out, *left_out),
        )

    @property
    def topics(self) -> tuple[str, ...]:
        """The topics that are read."""
        return tuple(topic for source in self.sources.values() for topic in source.topics)

    def group(self, source: str) -> str:
        """The consumer group that follows a source."""
        return self.sources[source].group_id or self.job


def plan_of(
    job: JobDefinition | None,
    inputs: Sequence[str],
    outputs: Sequence[str],
    servers: str,
    access: Mapping[str, Any] | None = None,
    **more: Any,
) -> VerifyPlan:
    """Return the plan for these topics, those of the job where none are named; without a job the output is a copy.

    A topic is named alone, or as `OPERATOR=TOPIC` in a job of several sources or sinks. `access` are client settings
    with which to get at the brokers, where the job's own don't do. Raises ConfigurationError where nothing can be
    judged.
    """
    if job is None:
        if not inputs or len(outputs) != 1:
            raise ConfigurationError("without a job (--map) there must be an --input, and one --output, its copy")
        job = Job("copy").source(KafkaSource(inputs)).sink(KafkaSink(outputs[0])).definition()
        inputs = outputs = ()
    job, wanted = _rebound(job, inputs, outputs)
    if wanted is not None:
        wanted = _with_own_topics(job, wanted)
    settings, access = RunSettings(bootstrap_servers=servers), access or {}
    judged, left_out = _judged(job, wanted)
    if not judged:
        raise ConfigurationError(f"job {job.name!r} can't be verified: {'; '.join(left_out)}")
    paths = Paths.of(job).to({sink for sinks in judged.values() for sink in sinks})
    connectors = KafkaConnectors.of(job)
    sources = {key: source for key, source in connectors.sources.items() if key in paths.sources}
    refuse_pattern(sources, "verified")
    clusters = {key: cluster_of(each, settings, access) for key, each in connectors.sinks.items()}
    return VerifyPlan(
        job=job.name,
        paths=paths,
        sources=sources,
        inputs={key: cluster_of(source, settings, access) for key, source in sources.items()},
        outputs={topic: _one_cluster(topic, {key: clusters[key] for key in sinks}) for topic, sinks in judged.items()},
        left_out=tuple(left_out),
        **more,
    )


def _rebound(
    job: JobDefinition, inputs: Sequence[str], outputs: Sequence[str]
) -> tuple[JobDefinition, tuple[str, ...] | None]:
    """Return the job on the topics that are named, and which of its topics are wanted; None for all."""
    connectors = KafkaConnectors.of(job)
    parts: dict[str, Any] = {}
    for operator, topics in _by_operator("--input", inputs, list(connectors.inputs)).items():
        parts[operator] = copy.copy(connectors.sources[operator])
        parts[operator].inputs, parts[operator].pattern = topics, None
    sinks = connectors.outputs
    fixed = {key: each for key, each in sinks.items() if isinstance(each.topic, str)}
    alone = [name for name in outputs if "=" not in name]
    if len(sinks) == len(fixed) == 1 and len(alone) > 1:
        raise ConfigurationError(f"job {job.name!r} writes to one topic, but --output names several")
    renames = outputs if len(sinks) == len(fixed) == 1 else [name for name in outputs if "=" in name]
    for operator, topics in _by_operator("--output", renames, list(fixed)).items():
        parts[operator] = copy.copy(fixed[operator])
        parts[operator].topic = topics[0]
    renamed = job.replaced(parts)
    if len(renames) == len(outputs):
        return renamed, None
    known = {topic for sink in renamed.sinks.values() for topic in sink.outputs}
    if len(fixed) == len(sinks) and (unknown := [name for name in alone if name not in known]):
        raise ConfigurationError(
            f"--output {unknown[0]}: job {job.name!r} writes to {listed(sorted(known))}; say OPERATOR=TOPIC to judge "
            f"another topic in the place of one, the operator one of {listed(fixed)}"
        )
    return renamed, tuple(alone)


def _by_operator(option: str, named: Sequence[str], operators: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Return the topics that are named for each operator."""
    topics: dict[str, tuple[str, ...]] = {}
    for name in named:
        operator, is_named, topic = name.rpartition("=")
        if not is_named and len(operators) == 1:
            operator = operators[0]
        if operator not in operators:
            raise ConfigurationError(
                f"{option} {name}: the job has {listed(operators, 'no such end')}; say which of them, as "
                f"{option} OPERATOR=TOPIC"
            )
        topics[operator] = (*topics.get(operator, ()), topic)
    return topics


def _judged(job: JobDefinition, wanted: tuple[str, ...] | None) -> tuple[dict[str, list[str]], list[str]]:
    """Return who writes to each topic that can be judged, by operator id, and what is left out, in words."""
    connectors, blind = KafkaConnectors.of(job), _undetermined(job)
    chosen = [key for key, each in connectors.sinks.items() if not isinstance(each.topic, str)]
    left_out = [
        f"what {key!r} writes is not judged: it is a {kind}, no KafkaSink"
        for key, kind in connectors.elsewhere.items()
        if key in job.sinks
    ]
    topics = (
        dict.fromkeys(topic for sink in connectors.sinks.values() for topic in sink.outputs)
        if wanted is None
        else wanted
    )
    if chosen and wanted is None:
        left_out.append(f"{listed(map(repr, chosen))} chooses a topic for each record: name them with --output")
    judged: dict[str, list[str]] = {}
    for topic in topics:
        # Whatever has no topic of its own may write to any.
        writers = [key for key, each in connectors.sinks.items() if topic in each.outputs or key in chosen]
        if why := next((blind[key] for key in writers if key in blind), ""):
            left_out.append(f"topic {topic!r} is not judged: {why}")
        else:
            judged[topic] = writers
    return judged, left_out


def _with_own_topics(job: JobDefinition, wanted: Sequence[str]) -> tuple[str, ...]:
    """Return the topics with those of the job's own that they are made of: one is right only where the other is."""
    connectors, paths, topics = KafkaConnectors.of(job), Paths.of(job), list(wanted)
    for source, sink in reversed(list(connectors.own.items())):
        behind = [connectors.sinks[key] for key in paths.behind({source}) if key in connectors.sinks]
        if any(not each.outputs or set(each.outputs) & set(topics) for each in behind):
            topics += [topic for topic in connectors.sinks[sink].outputs if topic not in topics]
    return tuple(topics)


def _undetermined(job: JobDefinition) -> dict[str, str]:
    """Say of operators why what they write can't be worked out."""
    connectors, why = KafkaConnectors.of(job), dict(Paths.of(job).undetermined)
    for operator in job.operators:
        if operator.id in connectors.elsewhere and operator.id in job.sources:
            why[operator.id] = (
                f"it has records of {operator.id!r}, which is a {connectors.elsewhere[operator.id]}, no KafkaSource"
            )
        for before in map(Port.parse, operator.inputs):
            if before.operator in why:
                why.setdefault(operator.id, why[before.operator])
    return why


def _one_cluster(topic: str, clusters: Mapping[str, Cluster]) -> Cluster:
    first, *others = clusters.values()
    if any(cluster.servers != first.servers for cluster in others):
        raise ConfigurationError(
            f"{listed(map(repr, clusters))} write to topics named {topic!r} of two clusters, which can't be told "
            "apart here: verify each by a job that has only the one sink"
        )
    return first
