"""A job beside the real one: its steps and its input, under names of its own, and with an end fixed beforehand.

The scratch job keeps the job's name, because a checkpoint belongs to a job by name; all else that could meet the real
job is another: transactional prefix, consumer group, output topic, checkpoint folder.

Invariant: a scratch sink settles no transaction but its own. Those that the restored checkpoint names are the real
job's: they are taken for committed here, whatever became of them, and no request about them leaves this job.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

from twopc.context import JobContext, SubtaskContext
from twopc.drill.interruption import InterruptedReader
from twopc.errors import ConfigurationError
from twopc.graph import JobDefinition
from twopc.job import Job
from twopc.kafka.connectors import KafkaConnectors, refuse_broadcasts
from twopc.kafka.positions.partition_position import PartitionSplit
from twopc.kafka.sink import DeliveryGuarantee, KafkaSink
from twopc.kafka.source import KafkaSource
from twopc.kafka.topic_partition import Position, TopicPartition
from twopc.kafka.topic_serdes import OfTopic
from twopc.kafka.transactions.committer import PlainCommitter, TransactionalCommitter
from twopc.loader.job_loader import load_job
from twopc.protocol.facts import Committable, SplitPosition
from twopc.scratch.job_file import write_job_file
from twopc.scratch.own_topic import kept_source
from twopc.serde import Serde
from twopc.sink import Outcome, Settled, SharedTransaction, Sink
from twopc.source import Follower, Source, SourcePlanner, SourceReader, Split

PREFIX = "twopc-drill-"

Offsets = Sequence[tuple[str, int, int]]
"""Topic, partition and offset."""


@dataclass(frozen=True, slots=True)
class Names:
    """The names of one drill's topics, groups and transactional ids; all begin with `name`."""

    name: str

    @classmethod
    def fresh(cls) -> Names:
        return cls(f"{PREFIX}{secrets.token_hex(4)}")

    @property
    def group(self) -> str:
        return self.name

    @property
    def transactional_prefix(self) -> str:
        return self.name

    def outputs(self, connectors: KafkaConnectors) -> dict[str, str]:
        """The topic that each sink writes to, in the place of its own."""
        return connectors.scratch_outputs(self.name)


@dataclass(frozen=True, slots=True)
class ScratchPlanner(SourcePlanner):
    """The plan of the job's source, each partition to an end that is given."""

    planner: SourcePlanner
    ends: Mapping[TopicPartition, Position]

    def plan(self, restored: Mapping[str, SplitPosition], bounded: bool) -> list[Split]:
        splits = map(PartitionSplit.from_split, self.planner.plan(restored, bounded))
        # A partition that was added since the end was fixed has none, and is not read.
        return [
            replace(split, stop=max(split.start, self.ends.get(split.partition, split.start))).to_split()
            for split in splits
        ]

    def unreadable(self, positions: Iterable[SplitPosition]) -> dict[SplitPosition, str]:
        return self.planner.unreadable(positions)

    def follower(self) -> Follower | None:
        return self.planner.follower()


class ScratchSource(KafkaSource):
    """The job's source, read as another group, each partition to an end that is given."""

    operator: str
    ends: Mapping[TopicPartition, Position]
    stops: Mapping[TopicPartition, Position]
    """The middle of each partition, if the run is to be interrupted there."""
    folder: str

    def open_planner(self, context: JobContext) -> SourcePlanner:
        return ScratchPlanner(super().open_planner(context), self.ends)

    def open_reader(self, context: SubtaskContext, splits: Sequence[Split]) -> SourceReader:
        reader = super().open_reader(context, splits)
        if not self.stops:
            return reader
        return InterruptedReader(reader, self.stops, Path(self.folder), context.subtask, self.operator)


class _PlainScratch(PlainCommitter):
    def settle(self, committables: Sequence[Committable], confirmed: frozenset[str]) -> list[Settled]:
        why = "it is the real job's: a drill leaves it alone"
        own = [item for item in committables if item.name.startswith(f"{self._config.prefix}-")]
        settled = {item.name: Settled(item, Outcome.ALREADY_COMMITTED, why) for item in committables}
        settled |= {item.committable.name: item for item in super().settle(own, confirmed)}
        return list(settled.values())


class _TransactionalScratch(_PlainScratch, TransactionalCommitter):
    pass


class ScratchSink(KafkaSink):
    """The job's sink, into another topic, under other transactional ids, and deaf to what the real job has pending."""

    committers: ClassVar[Mapping[DeliveryGuarantee, type[PlainCommitter]]] = {
        DeliveryGuarantee.EXACTLY_ONCE: _TransactionalScratch,
        DeliveryGuarantee.AT_LEAST_ONCE: _PlainScratch,
        DeliveryGuarantee.NONE: _PlainScratch,
    }
    real_prefix: str | None
    """The prefix of the job's own sink."""

    def shared_transaction(self, context: JobContext) -> SharedTransaction | None:
        """The group has the id of the real one: what the restored checkpoint names is found under that."""
        shared = super().shared_transaction(context)
        if shared is None:
            return None
        return replace(shared, id=f"kafka/{shared.cluster}/{self.real_prefix or context.job}")


def scratch_job(spec: str, name: str, ends: Offsets, stops: Offsets = (), folder: str = "") -> Job:
    """Return the job of a job file as a drill of this name runs it, to these ends.

    With `stops` it waits there, each partition in its middle, until it is told in `folder` to go on.
    """
    return Job.of(scratch_definition(load_job(spec), Names(name), ends, stops, folder))


def scratch_definition(
    definition: JobDefinition, names: Names, ends: Offsets, stops: Offsets = (), folder: str = ""
) -> JobDefinition:
    """Return the job with scratch sources and sinks; raise ConfigurationError for a job that can't be drilled."""
    real = KafkaConnectors.only(definition, "drilled")
    refuse_broadcasts(definition, "drilled")
    parts: dict[str, Source | Sink] = {}
    for key, source in real.inputs.items():
        reads = ScratchSource(
            source.topics,
            key=source.key,
            value=source.value,
            group_id=names.group,
            start=source.start,
            bootstrap_servers=source.bootstrap_servers,
            properties=source.properties,
        )
        reads.operator, reads.folder = key, folder
        reads.ends, reads.stops = _by_partition(ends), _by_partition(stops)
        parts[key] = reads
    topics, prefixes = names.outputs(real), real.scratch_prefixes(names.transactional_prefix)
    for key, sink in real.sinks.items():
        writes = ScratchSink(
            topics[key],
            key=_as_of(sink, sink.key),
            value=_as_of(sink, sink.value),
            delivery_guarantee=sink.delivery_guarantee,
            transactional_id_prefix=prefixes[key],
            bootstrap_servers=sink.bootstrap_servers,
            properties=sink.properties,
        )
        # As it is: that of a topic of the job's own is none that a user may give.
        writes.partitioner = sink.partitioner
        writes.real_prefix = sink.transactional_id_prefix
        parts[key] = writes
    for key, sink_id in real.own.items():
        read_back = real.sources[key]
        parts[key] = kept_source(read_back, topics[sink_id], group=names.group, servers=read_back.bootstrap_servers)
    return definition.replaced(parts)


def _as_of(sink: KafkaSink, serde: Serde) -> Serde:
    """Return a serde that works for the scratch topic as for the sink's own."""
    if not serde.must_be_opened:
        return serde
    if not isinstance(sink.topic, str):
        raise ConfigurationError(
            f"the job can't be drilled: {serde!r} works for the topic that it is opened for, and of the sink's a "
            "function chooses one for each record"
        )
    return OfTopic(serde, sink.topic)


def write_scratch_file(
    folder: Path,
    spec: str,
    names: Names,
    ends: Mapping[TopicPartition, Position],
    stops: Mapping[TopicPartition, Position] | None = None,
) -> str:
    """Write a job file that defines `scratch_job(...)`, for hosts that start fresh processes; return its path."""
    offsets = {"ends": _listed(ends), "stops": _listed(stops or {})}
    return write_job_file(folder, scratch_job, spec, name=names.name, folder=str(folder), **offsets)


def _listed(offsets: Mapping[TopicPartition, Position]) -> list[tuple[str, int, int]]:
    return [(partition.topic, partition.partition, int(offset)) for partition, offset in sorted(offsets.items())]


def _by_partition(offsets: Offsets) -> dict[TopicPartition, Position]:
    return {TopicPartition(topic, number): Position(offset) for topic, number, offset in offsets}
