"""The plan of the topic of a job's own: as of any topic, and what a job passes over there that goes back."""

from __future__ import annotations

from collections.abc import Sequence

from twopc.errors import ConfigurationError
from twopc.kafka.clients.control_client import ControlClient
from twopc.kafka.clients.retry import call_with_retry
from twopc.kafka.input.batches import scan
from twopc.kafka.input.planner import PLAN_BUDGET_SECONDS, KafkaPlanner
from twopc.kafka.positions.course import Course, Written
from twopc.kafka.positions.partition_position import PartitionPosition, input_of, partition_positions
from twopc.kafka.topic_partition import Position, TopicPartition
from twopc.kafka.topics.known_topics import known_topics
from twopc.protocol.facts import CheckpointMetadata, SplitPosition


class RepartitionPlanner(KafkaPlanner):
    """Passes over what the job has written to the topic since the checkpoint that it goes back to."""

    def on_course(self, restored: CheckpointMetadata) -> list[SplitPosition]:
        held = self._own(restored.positions)
        courses = {topic: course_of(restored, topic) for topic in self.topics}
        with self.connect() as client:
            held += call_with_retry(lambda: _added_since(client, held), PLAN_BUDGET_SECONDS)
            ends = call_with_retry(lambda: client.high_watermarks([at.partition for at in held]), PLAN_BUDGET_SECONDS)
            passing = [_passing(client, courses[at.partition.topic], at, ends[at.partition]) for at in held]
        return [at.to_split_position() for at in passing]


def course_of(restored: CheckpointMetadata, topic: str) -> Course:
    """Return what led to a checkpoint in a topic of the job's own.

    Raises ConfigurationError where its subtasks don't say, as those of earlier versions: unless all of them had read
    all that there was.
    """
    known = [known_topics(snapshot.outputs).get(topic) for snapshot in restored.snapshots]
    written = [each.written for each in known if each is not None and each.written is not None]
    if len(written) == len(restored.snapshots):
        return Course(written)
    if all(snapshot.finished for snapshot in restored.snapshots):
        here = partition_positions(held for held in restored.positions if input_of(held.split) == topic)
        return Course([Written(restored.attempt, ends=tuple(at.position for at in sorted(here, key=_number)))])
    raise ConfigurationError(
        f"checkpoint {restored.checkpoint_id} does not say which records of {topic!r} (by key_by) were written since: "
        "an earlier version of this program took it. Where it is not the latest, states behind that topic would count "
        "those twice: go on from the latest (--from latest), go back to a checkpoint that this version took, or begin "
        "anew with empty states (--from none)"
    )


def _added_since(client: ControlClient, held: Sequence[PartitionPosition]) -> tuple[PartitionPosition, ...]:
    """Return the first offset of each partition that somebody has added since: all there was written later."""
    known = {at.partition for at in held}
    topics = client.topics({at.partition.topic for at in held})
    every = ((TopicPartition(name, number), info) for name, info in topics.items() for number in range(info.partitions))
    return tuple(
        PartitionPosition(partition, info.topic_id, Position(0)) for partition, info in every if partition not in known
    )


def _number(at: PartitionPosition) -> int:
    return at.partition.partition


def _passing(client: ControlClient, course: Course, at: PartitionPosition, end: Position) -> PartitionPosition:
    """Read the headers of what subtasks wrote at the same time, and return the position that passes over the rest."""
    mixed_from, mixed_to = course.mixed(at, end)

    def fetch(offset: Position) -> bytes:
        return call_with_retry(lambda: client.fetch(at.partition, offset), PLAN_BUDGET_SECONDS)

    mixed = [
        (batch.producer_id, (Position(batch.first), Position(batch.last + 1)))
        for batch in scan(fetch, mixed_from, mixed_to)
    ]
    return course.passing(at, mixed, end)
