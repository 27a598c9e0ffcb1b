"""What a fault drill reads: generated records, lines of a file, or the newest of the real input."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from twopc.bench.load import produce_all, values_of
from twopc.bench.plan import BenchPlan
from twopc.drill.broker import Cluster
from twopc.errors import ConfigurationError
from twopc.kafka.source import KafkaSource
from twopc.kafka.topic_partition import Position, TopicPartition
from twopc.testing.topics import Write, produce

KEYS = 50
PARTITIONS = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """How many records, and where from: `sample` is a file of values, `copy` takes those of the real input."""

    records: int = 5_000
    sample: Path | None = None
    copy: bool = False

    def __post_init__(self) -> None:
        if self.copy and self.sample is not None:
            raise ConfigurationError("--copy and --sample say the same thing: give one of them")

    @property
    def refused(self) -> str:
        """What is to be said where the job can't take a record of it."""
        if self.copy:
            return "the job fails on a record of the real input (--copy), so that it can't be drilled with it"
        if self.sample is not None:
            return f"the job fails on a value of --sample {self.sample}, so that it can't be drilled with it"
        return (
            "the job fails on a record that the drill has made up, so that it can't be drilled with it: give it values "
            "of its own, a line each, with --sample FILE, or records of its real input with --copy"
        )

    def fill(self, cluster: Cluster, servers: str, topic: str, job_file: str, source: KafkaSource) -> int:
        """Create the scratch input and fill it; return how many records it has."""
        if self.copy:
            with Cluster(servers, {**source.properties, **cluster.access}) as real:
                return self._copy(real, cluster, servers, topic, source)
        plan = BenchPlan(job_file=job_file, records=self.records, keys=KEYS, partitions=PARTITIONS, sample=self.sample)
        values = values_of(plan, source.value)
        cluster.create_topic(topic, PARTITIONS)
        produce_all(servers, topic, plan, values, cluster.access)
        return self.records

    def _copy(self, real: Cluster, scratch: Cluster, servers: str, topic: str, source: KafkaSource) -> int:
        """Each record keeps its partition, so that those of a key stay in order."""
        ranges = real.ranges(real.control.topics(source.topics))
        if not ranges:
            raise ConfigurationError(f"--copy: there is no input topic {', '.join(source.topics)}")
        scratch.create_topic(topic, 1 + max(each.partition for each in ranges))
        share = max(1, self.records // len(ranges))
        starts = {each: max(first, Position(end - share)) for each, (first, end) in ranges.items()}
        copied = self._copied(real, starts, {each: end for each, (_, end) in ranges.items()})
        return produce(servers, topic, copied, scratch.access)

    @staticmethod
    def _copied(
        real: Cluster, starts: dict[TopicPartition, Position], ends: dict[TopicPartition, Position]
    ) -> Iterator[Write]:
        for row in real.read(starts, ends):
            headers = tuple(row.headers() or ())
            yield Write(row.value(), row.key(), row.partition(), row.timestamp()[1], headers)
