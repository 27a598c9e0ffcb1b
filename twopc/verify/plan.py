"""What is to be verified, as a value that is checked when it is made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from twopc.errors import ConfigurationError
from twopc.graph import JobDefinition
from twopc.job import Job
from twopc.kafka.access import access_of
from twopc.kafka.sink import KafkaSink
from twopc.kafka.source import KafkaSource
from twopc.verify.judge import EXAMPLES


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifyPlan:
    """Which topics are held against each other, and by which job.

    running: the job may still be running: the output has to be there up to the positions that its group has committed.
    committed: judge what a read_committed reader sees; otherwise what a read_uncommitted one sees.
    examples: so many findings are shown of each kind.
    access: client settings with which to get at the brokers, where the job's own don't do.
    """

    job: JobDefinition
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    servers: str
    running: bool = False
    committed: bool = True
    examples: int = EXAMPLES
    access: Mapping[str, Any] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        if not self.servers:
            raise ConfigurationError("no Kafka brokers are named: say --bootstrap-servers HOST:PORT")
        if not self.outputs:
            raise ConfigurationError(
                f"the sink of job {self.job.name!r} chooses a topic for each record: name them with --output"
            )
        if isinstance(self.sink.topic, str) and len(self.outputs) > 1:
            raise ConfigurationError(f"job {self.job.name!r} writes to one topic, but --output names several")
        if self.examples < 1:
            raise ConfigurationError(f"--examples must be at least 1, but is {self.examples}")

    @property
    def source(self) -> KafkaSource:
        source = self.job.pipeline("verified").source
        if not isinstance(source, KafkaSource):
            raise ConfigurationError(f"job {self.job.name!r} can't be verified: it must read with KafkaSource")
        return source

    @property
    def sink(self) -> KafkaSink:
        sink = self.job.pipeline("verified").sink
        if not isinstance(sink, KafkaSink):
            raise ConfigurationError(f"job {self.job.name!r} can't be verified: it must write with KafkaSink")
        return sink

    @property
    def group(self) -> str:
        return self.source.group_id or self.job.name

    @property
    def transactional_id_prefix(self) -> str:
        return self.sink.transactional_id_prefix or self.job.name

    def input_properties(self) -> dict[str, Any]:
        """The properties of a consumer of the input: those of the job's own."""
        return {**self.source.properties, **self.access}

    def output_properties(self) -> dict[str, Any]:
        """What a consumer of the output needs to get at the brokers that the sink's producers write to."""
        return {**access_of(self.sink.properties), **self.access}


def plan_of(
    job: JobDefinition | None, inputs: Sequence[str], outputs: Sequence[str], servers: str, **more: Any
) -> VerifyPlan:
    """Return the plan for these topics, those of the job where none are named; without a job the output is a copy."""
    if job is None:
        if not inputs or len(outputs) != 1:
            raise ConfigurationError("without a job (--map) there must be an --input, and one --output, its copy")
        job = Job("copy").source(KafkaSource(inputs)).sink(KafkaSink(outputs[0])).definition()
    pipeline = job.pipeline("verified")
    source, sink = pipeline.source, pipeline.sink
    if not inputs and isinstance(source, KafkaSource):
        inputs = source.topics
    if not outputs and isinstance(sink, KafkaSink) and isinstance(sink.topic, str):
        outputs = (sink.topic,)
    return VerifyPlan(job=job, inputs=tuple(inputs), outputs=tuple(outputs), servers=servers, **more)
