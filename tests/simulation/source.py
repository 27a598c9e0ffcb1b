"""Bounded inputs of numbered records, the same in every attempt.

Where the topic is made again, it holds as many records at the same offsets, of which none may ever be written.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any

from tests.simulation.broker import SimBroker
from tests.simulation.job import KEYS
from tests.simulation.joins import TOLD
from tests.simulation.kafka_clients import ANOTHER_CLUSTER, CLUSTER, SimControlClient, identity_of
from tests.simulation.transaction_tables import Code
from twopc.context import JobContext, SubtaskContext
from twopc.errors import ConfigurationError, Unavailable
from twopc.kafka.clients.retry import call_with_retry
from twopc.kafka.input.group import group_standing
from twopc.kafka.input.startup_modes import Latest
from twopc.kafka.positions.partition_position import PartitionSplit, input_of, partition_positions, split_positions
from twopc.kafka.topic_partition import Position, TopicPartition
from twopc.kafka.topics.topic_identity import TopicIdentity, recreated_input
from twopc.protocol.facts import SplitPosition
from twopc.protocol.ids import NO_ATTEMPT, AttemptId, CheckpointId
from twopc.record import Batch, Row
from twopc.source import Follower, FollowerStanding, Source, SourcePlanner, SourceReader, Split

GROUP = "group"
FIRST_ID = "input-id-0"
DELETED = "deleted by retention"
ARRIVE_MS = (40, 400)
"""How long until the next records are there: so that the input lasts for several checkpoints."""

ANSWER_SECONDS = 1.0
DISCOVER_MS = 200
LOOKS_AGAIN_MS = 40
"""How long until a reader that has found nothing looks again."""

AT_ONCE = 8
"""How many records a poll finds in the calm phase, in which they are all there."""


@dataclass(frozen=True, slots=True)
class SimRow:
    """The place where a record was read, which has neither timestamp nor headers."""

    of: TopicPartition
    at: int

    def topic(self) -> str:
        return self.of.topic

    def partition(self) -> int:
        return self.of.partition

    def offset(self) -> int:
        return self.at

    def timestamp(self) -> tuple[int, int]:
        return (0, 0)

    def headers(self) -> Any:
        return None


@dataclass(frozen=True, slots=True)
class InputRow(SimRow):
    """One input record; its key is its offset modulo KEYS. `topic_id` is of the topic that held it."""

    topic_id: str
    lane: int

    def key(self) -> bytes:
        return b"k%d" % (self.at % KEYS)

    def value(self) -> str:
        return f"{self.lane}:{self.at}" if self.topic_id == FIRST_ID else f"{self.lane}:{self.at}@{self.topic_id}"


class SplitReader(SourceReader):
    """Knows the next offset of each of its splits."""

    def __init__(
        self, broker: SimBroker, identity: TopicIdentity, splits: Sequence[PartitionSplit], attempt: AttemptId
    ) -> None:
        self._broker = broker
        self._world = broker.world
        self._identity = identity
        self._attempt = attempt
        self._splits = list(splits)
        for split in splits:
            identity.note_input(split.partition.topic, split.topic_id, [split.partition.partition])
        self._next = {split.partition: int(split.start) for split in splits}

    def positions(self, waiting: Iterable[Row] = ()) -> tuple[SplitPosition, ...]:
        at = dict(self._next)
        for row in waiting:
            assert isinstance(row, SimRow)
            at[row.of] = min(at[row.of], row.at)
        return split_positions(split.at(Position(at[split.partition])) for split in self._splits)

    def check_input(self, checkpoint_id: CheckpointId) -> None:
        if self._splits:
            self._identity.check(checkpoint_id)


class SimReader(SplitReader):
    """Hands out a few records at a time, or none; `goes_on` has it wait for more behind the last."""

    def __init__(
        self,
        broker: SimBroker,
        identity: TopicIdentity,
        splits: Sequence[PartitionSplit],
        attempt: AttemptId,
        *,
        goes_on: bool,
    ) -> None:
        super().__init__(broker, identity, splits, attempt)
        self._lanes = list(broker.lanes)
        self._stops = {split.partition: _stop(split) for split in splits}
        self._open_splits = [split for split in splits if split.start < _stop(split)]
        self._goes_on = goes_on
        self._arrives_at = 0

    def poll(self, timeout: float, most: int) -> Batch | None:
        world = self._world
        if not self._open_splits or world.now_ms < self._arrives_at:
            return None
        split = world.pick(self._open_splits)
        start = self._next[split.partition]
        stop = self._stops[split.partition]
        end = min(stop, start + (AT_ONCE if world.calm else world.between(1, 2)), start + most)
        self._arrives_at = world.now_ms + (0 if world.calm else world.between(*ARRIVE_MS))
        self._next[split.partition] = end
        if end == stop:
            self._open_splits.remove(split)
        lane = self._lanes.index(split.partition)
        rows = [InputRow(split.partition, at, self._broker.input_id, lane) for at in range(start, end)]
        if world.faults.joins:
            for at in range(start, end):
                self._broker.first_read_at.setdefault((lane, at), world.now_ms)
        return Batch(rows, [row.value() for row in rows])

    @property
    def arrives_in(self) -> int | None:
        """Milliseconds until a poll finds something; None if it never will."""
        if not self._open_splits:
            return LOOKS_AGAIN_MS if self._goes_on else None
        return max(0, self._arrives_at - self._world.now_ms)

    def bound(self) -> bool:
        """Every split has a stop already; in a job that is drained, what is there by now. What comes later is left."""
        if self._goes_on and self._world.faults.ends_drained:
            self._stops = {each: self._there_by_now(each) for each in self._stops}
            self._open_splits = [
                each for each in self._open_splits if self._next[each.partition] < self._stops[each.partition]
            ]
        self._goes_on = False
        self._broker.bounded |= {(self._attempt, each): stop for each, stop in self._stops.items()}
        return True

    def _there_by_now(self, partition: TopicPartition) -> int:
        """Return where a partition ends now: in the calm phase all of it is there."""
        world, whole = self._world, self._stops[partition]
        end = whole if world.calm else min(whole, self._next[partition] + world.delay(2))
        if end < whole:
            self._broker.cut_short.add(self._attempt)
            world.coverage["drained before the end of the input"] += 1
        return end

    def finished(self) -> bool:
        return not self._open_splits and not self._goes_on

    def caught_up(self) -> frozenset[str] | None:
        """What is behind the last record is known, or only whether a poll has found something."""
        if TOLD not in self._world.faults.joins:
            return None
        left = {str(split.partition) for split in self._open_splits}
        return frozenset(str(split.partition) for split in self._splits) - left


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
    """A topic whose partitions have so many records, read from the latest: another place once reading has begun.

    Where it `grows`, its last partition is there later than the others, and nobody is at the end before it is read.
    """

    def __init__(self, broker: SimBroker, topic: str, sizes: Sequence[int], *, grows: bool) -> None:
        self.inputs = (topic,)
        self._broker = broker
        self._topic = topic
        self._sizes = tuple(sizes)
        self._attempt = NO_ATTEMPT
        self.watch_ms = DISCOVER_MS if grows else None

    def open_planner(self, context: JobContext) -> SourcePlanner:
        planner = copy(self)
        planner._attempt = context.attempt
        return planner

    def plan(self, restored: Mapping[str, SplitPosition], bounded: bool) -> list[Split]:
        splits = []
        now = self._broker.input_id
        held_here = (held for held in partition_positions(restored.values()) if held.partition.topic == self._topic)
        known = {held.partition: held for held in held_here}
        other = next((held.topic_id for held in known.values() if held.topic_id != now), now)
        if other != now:
            raise ConfigurationError(recreated_input(self._topic, other, now))
        if self.watch_ms is not None and self._is_whole:
            self._broker.planned_whole.add(self._attempt)
        was_read = bool(known)
        for number, size in enumerate(self._sizes if self._is_whole else self._sizes[:-1]):
            partition = TopicPartition(self._topic, number)
            latest = Position(min(size, 1) if self._broker.input_is_read and not was_read else 0)
            start = known[partition].position if partition in known else latest
            if start < self._broker.input_begins_at[str(partition)]:
                raise ConfigurationError(f"{partition} should be read from {start}: {DELETED}")
            splits.append(PartitionSplit(partition, now, start, Position(size)).to_split())
        return splits

    @property
    def _is_whole(self) -> bool:
        return self.watch_ms is None or self._broker.has_grown

    def misses_some(self, attempt: AttemptId) -> bool:
        """Whether the attempt was planned before the last partition came, or told to end before the rest did."""
        if attempt in self._broker.cut_short:
            return True
        return self.watch_ms is not None and attempt not in self._broker.planned_whole

    def added(self, read: Sequence[Split]) -> list[Split]:
        if self._broker.away is not Code.NONE:
            raise Unavailable("the broker is away")
        partition = TopicPartition(self._topic, len(self._sizes) - 1)
        if not self._is_whole or str(partition) in {split.id for split in read}:
            return []
        self._broker.world.coverage["new input found"] += 1
        return [PartitionSplit(partition, self._broker.input_id, Position(0), None).to_split()]

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
        goes_on = self._broker.world.faults.ends_drained or self.misses_some(context.attempt)
        partitions = list(map(PartitionSplit.from_split, splits))
        identity = identity_of(context, self._broker)
        return SimReader(self._broker, identity, partitions, context.attempt, goes_on=goes_on)
