"""A bounded input of numbered records, the same in every attempt, and what the job makes of it.

Where the topic is made again, it holds as many records at the same offsets, of which none may ever be written.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from tests.simulation.broker import INPUT, SimBroker
from tests.simulation.kafka_clients import identity_of
from twopc.context import JobContext, SubtaskContext
from twopc.errors import ConfigurationError
from twopc.kafka.identity import Identity, recreated_input
from twopc.kafka.positions import PartitionPosition, PartitionSplit, partition_positions, split_positions
from twopc.kafka.topic_partition import Position, TopicPartition
from twopc.operators.steps import StatefulMap
from twopc.protocol.facts import SplitPosition
from twopc.protocol.ids import CheckpointId
from twopc.record import Batch, Row
from twopc.serde import Json
from twopc.source import Source, SourcePlanner, SourceReader, Split

GROUP = "group"
STATE = "count"
FIRST_ID = "input-id-0"
KEYS = 3
DELETED = "deleted by retention"
ARRIVE_MS = (40, 400)
"""How long until the next records are there: so that the input lasts for several checkpoints."""

AT_ONCE = 8
"""How many records a poll finds in the calm phase, in which they are all there."""


@dataclass(frozen=True, slots=True)
class InputRow:
    """One input record; its key is its offset modulo KEYS. `topic_id` is of the topic that held it."""

    number: int
    at: int
    topic_id: str

    def topic(self) -> str:
        return INPUT

    def partition(self) -> int:
        return self.number

    def offset(self) -> int:
        return self.at

    def key(self) -> bytes:
        return b"k%d" % (self.at % KEYS)

    def value(self) -> str:
        return f"{self.number}:{self.at}" if self.topic_id == FIRST_ID else f"{self.number}:{self.at}@{self.topic_id}"

    def timestamp(self) -> tuple[int, int]:
        return (0, 0)

    def headers(self) -> Any:
        return None


def count(state: int | None, value: str) -> tuple[int, str]:
    """The job: number the records of each key, so that the output shows every slip of the state."""
    seen = (state or 0) + 1
    return seen, f"{value}:{seen}"


STEP = StatefulMap(count, STATE, Json())


@cache
def expected_output(partition: int, records: int) -> Sequence[str]:
    seen: Counter[int] = Counter()
    output = []
    for offset in range(records):
        seen[offset % KEYS] += 1
        output.append(f"{partition}:{offset}:{seen[offset % KEYS]}")
    return tuple(output)


class SimReader(SourceReader):
    """Hands out a few records at a time, or none."""

    def __init__(self, broker: SimBroker, identity: Identity, splits: Sequence[PartitionSplit]) -> None:
        self._broker = broker
        self._identity = identity
        self._world = broker.world
        self._splits = list(splits)
        for split in splits:
            identity.note_input(INPUT, split.topic_id, [split.partition.partition])
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
        rows = [InputRow(split.partition.partition, at, self._broker.input_id) for at in range(start, end)]
        return Batch(rows, [row.value() for row in rows])

    @property
    def arrives_in(self) -> int | None:
        """Milliseconds until a poll finds something; None if it never will."""
        return None if self.finished() else max(0, self._arrives_at - self._world.now_ms)

    def positions(self, waiting: Iterable[Row] = ()) -> tuple[SplitPosition, ...]:
        at = dict(self._next)
        for row in waiting:
            partition = TopicPartition(INPUT, row.partition() or 0)
            at[partition] = min(at[partition], row.offset() or 0)
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


class SimSource(Source, SourcePlanner):
    """So many partitions with so many records, read from the latest: which is another place once reading has begun."""

    def __init__(self, broker: SimBroker, sizes: Sequence[int]) -> None:
        self._broker = broker
        self.sizes = tuple(sizes)

    def open_planner(self, context: JobContext) -> SourcePlanner:
        return self

    def plan(self, restored: Mapping[str, SplitPosition], bounded: bool) -> list[Split]:
        splits = []
        now = self._broker.input_id
        known = {held.partition: held for held in partition_positions(restored.values())}
        other = next((held.topic_id for held in known.values() if held.topic_id != now), now)
        if other != now:
            raise ConfigurationError(recreated_input(INPUT, other, now))
        for number, size in enumerate(self.sizes):
            partition = TopicPartition(INPUT, number)
            latest = Position(min(size, 1) if self._broker.input_is_read else 0)
            start = known[partition].position if partition in known else latest
            if start < self._broker.input_begins_at[number]:
                raise ConfigurationError(f"{partition} should be read from {start}: {DELETED}")
            splits.append(PartitionSplit(partition, now, start, Position(size)).to_split())
        return splits

    def unreadable(self, positions: Iterable[SplitPosition]) -> dict[SplitPosition, str]:
        begins_at = self._broker.input_begins_at
        gone = [held for held in partition_positions(positions) if held.position < begins_at[held.partition.partition]]
        return {held.to_split_position(): f"{held.partition}: {DELETED}" for held in gone}

    def open_reader(self, context: SubtaskContext, splits: Sequence[Split]) -> SimReader:
        self._broker.input_is_read = True
        return SimReader(self._broker, identity_of(context, self._broker), list(map(PartitionSplit.from_split, splits)))
