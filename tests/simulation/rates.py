"""The source of a broadcast table: what is there when the job begins, and what comes while it runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from tests.simulation.broker import SimBroker
from tests.simulation.source import SimRow
from twopc.context import JobContext, SubtaskContext
from twopc.errors import Unavailable
from twopc.kafka.positions.partition_position import PartitionPosition, PartitionSplit, input_of, split_positions
from twopc.kafka.topic_partition import Position, TopicPartition
from twopc.protocol.facts import SplitPosition
from twopc.record import Batch, Row
from twopc.source import Source, SourcePlanner, SourceReader, Split

TOPIC, TOPIC_ID = "rates", "rates-id"
PARTITION = TopicPartition(TOPIC, 0)

AT_FIRST = (("r0", "a"), ("r1", "b"), ("r0", "c"), ("r2", "d"), ("r2", None))
LATER = tuple((f"r{at % 3}", None if at % 4 == 1 else f"{at}") for at in range(12))
CHANGES: Sequence[tuple[str, str | None]] = (*AT_FIRST, *LATER)
"""Keys and values in the order in which they are written; the later ones one after the other."""

CHANGE_MS = 150
READ_MS = 60
"""How long it takes at most to read some of it."""


@dataclass(frozen=True, slots=True)
class RateRow(SimRow):
    """One change."""

    def key(self) -> bytes:
        return CHANGES[self.at][0].encode()

    def value(self) -> str | None:
        return CHANGES[self.at][1]


class RatesReader(SourceReader):
    """Hands over some at a time up to its stop; one without, all that there is."""

    def __init__(self, broker: SimBroker, split: PartitionSplit) -> None:
        self._broker = broker
        self._split = split
        self._next = int(split.start)

    def poll(self, timeout: float, most: int) -> Batch | None:
        world, stop = self._broker.world, self._split.stop
        if stop is None:
            end = there_at(world.now_ms)
        else:
            world.sleep(world.between(1, READ_MS) / 1000)
            end = min(int(stop), self._next + world.between(1, 2))
        if end <= self._next:
            return None
        rows = [RateRow(PARTITION, at) for at in range(self._next, end)]
        self._next = end
        return Batch(rows, [row.value() for row in rows])

    def positions(self, waiting: Iterable[Row] = ()) -> tuple[SplitPosition, ...]:
        return split_positions((PartitionPosition(PARTITION, TOPIC_ID, Position(self._next)),))

    def finished(self) -> bool:
        return self._split.stop is not None and self._next >= int(self._split.stop)


class Rates(Source, SourcePlanner):
    """Every subtask reads all of it."""

    inputs = (TOPIC,)

    def __init__(self, broker: SimBroker) -> None:
        self._broker = broker

    def from_beginning(self) -> Source:
        return self

    def open_planner(self, context: JobContext) -> SourcePlanner:
        return self

    def plan(self, restored: Mapping[str, SplitPosition], bounded: bool) -> list[Split]:
        if self._broker.away:
            raise Unavailable("simulated: nobody says where the topic ends")
        stop = Position(there_at(self._broker.world.now_ms)) if bounded else None
        return [PartitionSplit(PARTITION, TOPIC_ID, Position(0), stop).to_split()]

    def input_of(self, split: str) -> str:
        return input_of(split)

    def open_reader(self, context: SubtaskContext, splits: Sequence[Split]) -> RatesReader:
        (split,) = splits
        return RatesReader(self._broker, PartitionSplit.from_split(split))


def there_at(now_ms: int) -> int:
    """How many of the changes are there at this time."""
    return min(len(CHANGES), len(AT_FIRST) + now_ms // CHANGE_MS)


def rates_after(changes: int) -> dict[str, str]:
    """Return what the table has after so many of the changes."""
    latest = dict(CHANGES[:changes])
    return {key: value for key, value in latest.items() if value is not None}
