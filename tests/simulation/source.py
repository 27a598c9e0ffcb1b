"""Bounded inputs of numbered records, the same in every attempt.

Where the topic is made again, it holds as many records at the same offsets, of which none may ever be written.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tests.simulation.broker import SimBroker
from tests.simulation.job import KEYS
from tests.simulation.kafka_clients import ANOTHER_CLUSTER, CLUSTER, SimControlClient, identity_of
from twopc.context import JobContext, SubtaskContext
from twopc.errors import ConfigurationError
from twopc.kafka.group import group_standing
from twopc.kafka.identity import Identity, recreated_input
from twopc.kafka.positions import (
    PartitionPosition,
    PartitionSplit,
    input_of,
    partition_positions,
    split_positions,
)
from twopc.kafka.retry import call_with_retry
from twopc.kafka.start import Latest
from twopc.kafka.topic_partition import Position, TopicPartition
from twopc.protocol.facts import SplitPosition
from twopc.protocol.ids import CheckpointId
from twopc.record import Batch, Row
from twopc.source import Follower, FollowerStanding, Source, SourcePlanner, SourceReader, Split

GROUP = "group"
FIRST_ID = "input-id-0"
DELETED = "deleted by retention"
ARRIVE_MS = (40, 400)
"""How long until the next records are there: so that the input lasts for several checkpoints."""

ANSWER_SECONDS = 1.0
AT_ONCE = 8
"""How many records a poll finds in the calm phase, in which they are all there."""


@dataclass(frozen=True, slots=True)
class InputRow:
    """One input record; its key is its offset modulo KEYS. `topic_id` is of the topic that held it."""

    of: TopicPartition
    at: int
    topic_id: str
    lane: int

    def topic(self) -> str:
        return self.of.topic

    def partition(self) -> int:
        return self.of.partition

    def offset(self) -> int:
        return self.at

    def key(self) -> bytes:
        return b"k%d" % (self.at % KEYS)

    def value(self) -> str:
        return f"{self.lane}:{self.at}" if self.topic_id == FIRST_ID else f"{self.lane}:{self.at}@{self.topic_id}"

    def timestamp(self) -> tuple[int, int]:
        return (0, 0)

    def headers(self) -> Any:
        return None


class SimReader(SourceReader):
    """Hands out a few records at a time, or none."""

    def __init__(self, broker: SimBroker, identity: Identity, splits: Sequence[PartitionSplit]) -> None:
        self._broker = broker
        self._identity = identity
        self._world = broker.world
        self._splits = list(splits)
        self._lanes = list(broker.lanes)
        for split in splits:
            identity.note_input(split.partition.topic, split.topic_id, [split.partition.partition])
        self._next = {split.partition: int(split.start) for split in splits}
        self._open_splits = [split for split in splits if split.start < _stop(split)]
        self._arrives_at = 0

    def poll(self, timeout: float, most: int) -> Batch | None:
        world = self._world
        if not self._open_splits or world.now_ms < self._arrives_at:
            return None
        split = world.pick(self._open_splits)
        start = self._next[split.partition]
        end = min(_stop(split), start + (AT_ONCE if world.calm else world.between(1, 2)), start + most)
        self._arrives_at = world.now_ms + (0 if world.calm else world.between(*ARRIVE_MS))
        self._next[split.partition] = end
        if end == _stop(split):
            self._open_splits.remove(split)
        lane = self._lanes.index(split.partition)
        rows = [InputRow(split.partition, at, self._broker.input_id, lane) for at in range(start, end)]
        return Batch(rows, [row.value() for row in rows])

    @property
    def arrives_in(self) -> int | None:
        """Milliseconds until a poll finds something; None if it never will."""
        return None if self.finished() else max(0, self._arrives_at - self._world.now_ms)

    def positions(self, waiting: Iterable[Row] = ()) -> tuple[SplitPosition, ...]:
        at = dict(self._next)
        for row in waiting:
            assert isinstance(row, InputRow)
            at[row.of] = min(at[row.of], row.at)
        return split_positions(
            PartitionPosition(split.partition, split.topic_id, Position(at[split.partition])) for split in self._splits
        )

    def check_input(self, checkpoint_id: CheckpointId) -> None:
        if self._splits:
            self._identity.check(checkpoint_id)

    def bound(self) -> bool:
        """Every split has a stop already."""
        return True

    def finished(self) -> bool:
        return not self._open_splits


def _stop(split: PartitionSplit) -> int:
    assert split.stop is not None
    return int(split.stop)


class SimGroup(Follower):
    """The job's consumer group, in the topics of one source."""

    name = GROUP

    def __init__(self, broker: SimBroker, topic: str) -> None:
        self._client: Any = SimControlClient(broker)
        self._topic = topic
        self._elsewhere = broker.world.faults.follower_elsewhere

    def cluster(self) -> str:
        return ANOTHER_CLUSTER if self._elsewhere else CLUSTER

    def standing(self) -> FollowerStanding:
        return call_with_retry(lambda: group_standing(self._client, GROUP, (self._topic,), Latest()), ANSWER_SECONDS)


class SimSource(Source, SourcePlanner):
    """A topic whose partitions have so many records, read from the latest: another place once reading has begun."""

    def __init__(self, broker: SimBroker, topic: str, sizes: Sequence[int]) -> None:
        self.inputs = (topic,)
        self._broker = broker
        self._topic = topic
        self._sizes = tuple(sizes)

    def open_planner(self, context: JobContext) -> SourcePlanner:
        return self

    def plan(self, restored: Mapping[str, SplitPosition], bounded: bool) -> list[Split]:
        splits = []
        now = self._broker.input_id
        known = {held.partition: held for held in partition_positions(restored.values())}
        other = next((held.topic_id for held in known.values() if held.topic_id != now), now)
        if other != now:
            raise ConfigurationError(recreated_input(self._topic, other, now))
        for number, size in enumerate(self._sizes):
            partition = TopicPartition(self._topic, number)
            latest = Position(min(size, 1) if self._broker.input_is_read else 0)
            start = known[partition].position if partition in known else latest
            if start < self._broker.input_begins_at[str(partition)]:
                raise ConfigurationError(f"{partition} should be read from {start}: {DELETED}")
            splits.append(PartitionSplit(partition, now, start, Position(size)).to_split())
        return splits

    def follower(self) -> SimGroup:
        return SimGroup(self._broker, self._topic)

    def unreadable(self, positions: Iterable[SplitPosition]) -> dict[SplitPosition, str]:
        begins_at = self._broker.input_begins_at
        gone = [held for held in partition_positions(positions) if held.position < begins_at[str(held.partition)]]
        return {held.to_split_position(): f"{held.partition}: {DELETED}" for held in gone}

    def input_of(self, split: str) -> str:
        return input_of(split)

    def open_reader(self, context: SubtaskContext, splits: Sequence[Split]) -> SimReader:
        self._broker.input_is_read = True
        return SimReader(self._broker, identity_of(context, self._broker), list(map(PartitionSplit.from_split, splits)))
