"""The load of a fault drill: generated records, lines of a file, or the newest of the real input."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from twopc.bench.load import produce_all, values_of
from twopc.bench.plan import BenchPlan
from twopc.drill.broker import create_scratch_topic
from twopc.errors import ConfigurationError
from twopc.kafka.clients.cluster import Cluster
from twopc.kafka.input.topic_reader import ranges_of, read
from twopc.kafka.output.topic_writer import TopicWriter
from twopc.kafka.source import KafkaSource
from twopc.kafka.topic_partition import Position

KEYS = 50
PARTITIONS = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """The number of records, and where from: `sample` is a file of values, `copy` takes those of the real input."""

    records: int = 5_000
    sample: Path | None = None
    copy: bool = False

    def __post_init__(self) -> None:
        if self.copy and self.sample is not None:
            raise ConfigurationError("--copy and --sample say the same thing: give one of them")

    @property
    def refused(self) -> str:
        """The message where the job can't take a record of it."""
        if self.copy:
            return "the job fails on a record of the real input (--copy), so that it can't be drilled with it"
        if self.sample is not None:
            return f"the job fails on a value of --sample {self.sample}, so that it can't be drilled with it"
        return (
            "the job fails on a record that the drill has made up, so that it can't be drilled with it: give it values "
            "of its own, a line each, with --sample FILE, or records of its real input with --copy"
        )

    def fill(self, cluster: Cluster, topic: str, job_file: str, source: KafkaSource, real: Cluster, share: int) -> int:
        """Create the scratch input of a source and fill it; return how many records it has.

        It has its share of the load, one of so many. `real` is where the source really reads.
        """
        if self.copy:
            return self._copy(real, cluster, topic, source, share)
        plan = BenchPlan(job_file=job_file, records=self.records, keys=KEYS, partitions=PARTITIONS, sample=self.sample)
        values = values_of(plan, source.value)
        create_scratch_topic(cluster, topic, PARTITIONS)
        return produce_all(cluster, topic, plan, values, max(1, self.records // share))

    def _copy(self, real: Cluster, scratch: Cluster, topic: str, source: KafkaSource, share: int) -> int:
        """Each record keeps its partition, so that those of a key stay in order."""
        with real.client() as client:
            ranges = ranges_of(client, client.topics(source.topics))
        if not ranges:
            raise ConfigurationError(f"--copy: there is no input topic {', '.join(source.topics)}")
        create_scratch_topic(scratch, topic, 1 + max(partition.partition for partition in ranges))
        most = max(1, self.records // share // len(ranges))
        newest = {partition: (max(first, Position(end - most)), end) for partition, (first, end) in ranges.items()}
        writer = TopicWriter(scratch)
        for batch in read(real, newest):
            for row in batch.rows:
                writer.write(
                    topic,
                    row.value(),
                    row.key(),
                    partition=row.partition(),
                    timestamp=row.timestamp()[1],
                    headers=list(row.headers() or ()),
                )
        return writer.finish()
