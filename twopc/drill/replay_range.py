"""The range that a drill replays and compares: fixed once, so that a job that runs beside it changes nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from twopc.checkpoints.catalog import CheckpointEntry, JobCheckpoints
from twopc.drill.job import DrillJob
from twopc.drill.output_comparison import Ends
from twopc.drill.restore_checks import complete_up_to, repeated_input
from twopc.errors import ConfigurationError
from twopc.kafka.clients.cluster import Cluster
from twopc.kafka.input.topic_reader import Ranges, high_watermarks, ranges_of
from twopc.kafka.positions.partition_position import offsets_of
from twopc.kafka.topic_partition import Position, TopicPartition
from twopc.kafka.transactions.committable import PreparedTransaction
from twopc.protocol.facts import CheckpointMetadata


@dataclass(frozen=True, slots=True)
class ReplayRange:
    """Start and end of the replay, and `required`: up to where the job's own output must be there.

    `written` is what could be seen of the job's output. Where a function chooses the topic, those are meant that a
    transaction of a checkpoint that is kept names: none may be. `repeated` is what the job wrote a second time when it
    went back, in words, as far as the positions of checkpoints tell.
    """

    starts: Ends
    ends: Ends
    required: Ends
    written: Ranges
    repeated: tuple[str, ...] = ()

    @property
    def to_replay(self) -> int:
        return sum(end - self.starts[partition] for partition, end in self.ends.items())

    @classmethod
    def fix(cls, metadata: CheckpointMetadata, found: JobCheckpoints, job: DrillJob) -> ReplayRange:
        """Ask for the ends. The output's come first: what is visible by then, the replay must make."""
        kept = found.completed
        named = _named(kept, job)
        written: dict[TopicPartition, tuple[Position, Position]] = {}
        nothing_open = True
        for key, sink in job.connectors.sinks.items():
            part = _written(job.outputs[key], sink.outputs or sorted(named.get(key, ())))
            if missing := [topic for topic in sink.outputs if not any(partition.topic == topic for partition in part)]:
                raise ConfigurationError(f"output topic {missing[0]!r} isn't there: the job could not write either")
            log_ends = high_watermarks(job.outputs[key], part)
            nothing_open &= all(log_ends[partition] <= end for partition, (_, end) in part.items())
            written |= {partition: ends for partition, ends in part.items() if job.is_known_topic(partition.topic)}
        read = job.input_ranges()
        held = offsets_of(metadata.positions)
        starts = {partition: held.get(partition, first) for partition, (first, _) in read.items()}
        complete = complete_up_to([(entry.metadata, _is_committed(entry)) for entry in kept], nothing_open=nothing_open)
        required = {} if complete is None else offsets_of(complete.positions)
        return cls(
            starts=starts,
            ends={partition: max(end, starts[partition]) for partition, (_, end) in read.items()},
            required={partition: max(required.get(partition, start), start) for partition, start in starts.items()},
            written=written,
            repeated=tuple(repeated_input(_since(metadata, found))),
        )

    def written_to(self, topic: str) -> Ranges:
        """The range of one topic of the output that could be seen."""
        return {partition: ends for partition, ends in self.written.items() if partition.topic == topic}

    def partitions(self, topics: Sequence[str] = ()) -> int:
        """The number of partitions of the scratch output in the place of these topics, or of any.

        As many as the real one, so that keys meet the same others.
        """
        own = (
            [partition for partition in self.written if partition.topic in topics]
            or list(self.written)
            or list(self.starts)
        )
        return 1 + max((partition.partition for partition in own), default=0)


def _written(cluster: Cluster, topics: Sequence[str]) -> Ranges:
    with cluster.client() as client:
        return ranges_of(client, client.topics(topics))


def _since(metadata: CheckpointMetadata, found: JobCheckpoints) -> list[CheckpointMetadata]:
    """The checkpoint and those that followed it; before those of the current attempt, what that was restored from.

    None, if output was lost after it: that is written again rightly.
    """
    later = [entry for entry in found.completed if entry.checkpoint_id >= metadata.checkpoint_id]
    if any(entry.losses for entry in later):
        return []
    since = [entry.metadata for entry in later if entry.metadata is not None]
    started = found.state.attempt
    if started is not None:
        known = [
            entry.metadata for entry in found.completed if entry.checkpoint_id == started.restored and entry.metadata
        ]
        place = next((n for n, each in enumerate(since) if each.attempt >= started.attempt), len(since))
        since[place:place] = [replace(each, attempt=started.attempt) for each in known]
    return since


def _named(kept: Sequence[CheckpointEntry], job: DrillJob) -> dict[str, set[str]]:
    """The topics that the transactions of these checkpoints wrote to, by each sink that may have."""
    named: dict[str, set[str]] = {}
    for entry in kept:
        for item in () if entry.metadata is None else entry.metadata.committables:
            for sink in job.sinks_of(item):
                named.setdefault(sink, set()).update(PreparedTransaction.from_committable(item).topic_ids)
    return named


def _is_committed(entry: CheckpointEntry) -> bool:
    """Whether every transaction of the checkpoint is known to be committed."""
    return entry.metadata is not None and {item.name for item in entry.metadata.committables} <= entry.confirmed
