"""Topics of the job's own (`key_by`) in a restore drill: what they held at the checkpoint, and how they are read.

The real topic has all records from the checkpoint's positions on: the job deletes none that a kept checkpoint may read.
Those that stood there before it was taken were not read yet. A scratch run has to find them in its own topic, before
what it writes itself.

Whose a record is its producer and its offset say (`twopc.kafka.positions.course`), and what the positions pass over.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from twopc.drill.broker import create_scratch_topic
from twopc.drill.job import DrillJob
from twopc.drill.output_comparison import Ends, OutputSinceCheckpoint
from twopc.drill.real_output import OutputTopic, WrittenOutput, holes_of
from twopc.drill.replay_range import ReplayRange
from twopc.drill.scratch_job import Names
from twopc.graph import JobDefinition
from twopc.kafka.clients.cluster import Cluster
from twopc.kafka.connectors import KafkaConnectors
from twopc.kafka.input.topic_reader import high_watermarks, read
from twopc.kafka.output.topic_writer import TopicWriter
from twopc.kafka.place import Place
from twopc.kafka.positions.course import Course
from twopc.kafka.positions.partition_position import Gap, input_of, is_in, partition_positions
from twopc.kafka.repartition import TOPIC_SETTINGS
from twopc.kafka.repartition_planner import course_of
from twopc.kafka.topic_partition import Position, TopicPartition
from twopc.protocol.facts import CheckpointMetadata
from twopc.record import Row
from twopc.scratch.own_topic import kept_source
from twopc.verify.history import Expected, Outcome, Transaction
from twopc.verify.lanes import everywhere
from twopc.verify.transaction_lookup import TopicLog


@dataclass(frozen=True, slots=True)
class OwnRecords:
    """The records of one of the job's own topics, as a checkpoint sees them: from before it, or from after it.

    Those `passed` over are of neither: the job had gone back from them before the checkpoint.
    """

    course: Course
    passed: Mapping[TopicPartition, Sequence[Gap]]

    @classmethod
    def of(cls, metadata: CheckpointMetadata, topic: str) -> OwnRecords:
        here = partition_positions(held for held in metadata.positions if input_of(held.split) == topic)
        return cls(course_of(metadata, topic), {held.partition: held.passed for held in here})

    def are_passed(self, place: Place) -> bool:
        return is_in(self.passed.get(place.partition, ()), place.offset)

    def led_here(self, place: Place, transaction: Transaction) -> bool:
        """Whether this transaction wrote it for the checkpoint or before."""
        return self.course.has(place.partition.partition, transaction.producer_id, place.offset)


@dataclass(frozen=True, slots=True)
class OwnTopic:
    """One of the job's own: `scratch` stands in the place of the `real` one. Its connectors are `source` and `sink`."""

    source: str
    sink: str
    real: str
    scratch: str
    cluster: Cluster

    def copy_unread(self, metadata: CheckpointMetadata, starts: Ends) -> dict[TopicPartition, Position]:
        """Make the scratch topic, with what the checkpoint had written to the real one and not read.

        Return behind how many records of each partition the scratch run writes its own.
        """
        partitions = sum(start.topic == self.real for start in starts)
        create_scratch_topic(self.cluster, self.scratch, partitions, TOPIC_SETTINGS)
        writer, copied = TopicWriter(self.cluster), Counter[int]()
        for row in self._unread(metadata, starts):
            number = row.partition() or 0
            copied[number] += 1
            writer.write(
                self.scratch,
                row.value(),
                row.key(),
                partition=number,
                timestamp=row.timestamp()[1],
                headers=list(row.headers() or ()),
            )
        writer.finish()
        return {TopicPartition(self.scratch, number): Position(copied[number]) for number in range(partitions)}

    def _unread(self, metadata: CheckpointMetadata, starts: Ends) -> Iterator[Row]:
        log = TopicLog(self.cluster)
        ends = high_watermarks(self.cluster, [start for start in starts if start.topic == self.real])
        ranges = {each: (starts[each], end) for each, end in ends.items()}
        lookup = log.lookup(ranges, ends)
        records = OwnRecords.of(metadata, self.real)
        for batch in read(self.cluster, ranges, committed=False):
            for row in batch.rows:
                partition = TopicPartition(row.topic() or "", row.partition() or 0)
                transaction = lookup[partition].at(row.offset() or 0)
                place = Place(partition, row.offset() or 0)
                if transaction is None or transaction.outcome is Outcome.ABORTED or records.are_passed(place):
                    continue
                if records.led_here(place, transaction):
                    yield row


@dataclass(frozen=True, slots=True)
class OwnOutput(OutputTopic):
    """A topic of the job's own, as what the job really wrote there: whose each record is, is known."""

    def written(
        self, topic: str, metadata: CheckpointMetadata, replay_range: ReplayRange, expected: Sequence[Expected]
    ) -> WrittenOutput:
        ranges = {
            partition: (max(first, replay_range.starts[partition]), end)
            for partition, (first, end) in replay_range.written_to(topic).items()
        }
        lookup = self.log.lookup(ranges)
        records = OwnRecords.of(metadata, topic)
        found = [
            each
            for each in self.log.see(ranges, lookup)
            if not records.are_passed(each.place)
            and (each.transaction is None or not records.led_here(each.place, each.transaction))
        ]
        return WrittenOutput(OutputSinceCheckpoint(found), everywhere, holes_of(lookup))


def own_topics(job: DrillJob, names: Names) -> list[OwnTopic]:
    """Return the topics of the job's own, in the order in which they are written."""
    scratch = names.outputs(job.connectors)
    return [
        OwnTopic(source, sink, topic, scratch[sink], job.outputs[sink])
        for source, sink in job.connectors.own.items()
        for topic in job.connectors.sinks[sink].outputs
    ]


def ends_of_records(job: DrillJob, positions: Ends, ends: Ends) -> dict[TopicPartition, Position]:
    """Return these ends; that of a partition of the job's own is its position where no record follows it.

    A job ends where such a partition did when all had been committed, and a broker may write the last transaction's
    marker after it has acknowledged the commit.
    """
    found = dict(ends)
    for source in job.connectors.own:
        topics = job.connectors.sources[source].topics
        short = {
            partition: (position, ends[partition])
            for partition, position in positions.items()
            if partition.topic in topics and position < ends[partition]
        }
        followed = {
            TopicPartition(row.topic() or "", row.partition() or 0)
            for batch in read(job.inputs[source], short)
            for row in batch.rows
        }
        found |= {partition: position for partition, (position, _) in short.items() if partition not in followed}
    return found


def on_scratch_topics(definition: JobDefinition, own: Sequence[OwnTopic]) -> JobDefinition:
    """Return the job as it reads the scratch topics in the place of its own, to work out what that makes."""
    connectors = KafkaConnectors.of(definition)
    return definition.replaced(
        {
            topic.source: kept_source(
                connectors.sources[topic.source],
                topic.scratch,
                group=None,
                servers=connectors.sources[topic.source].bootstrap_servers,
            )
            for topic in own
        }
    )
