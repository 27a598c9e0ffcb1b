"""The source of a job that reads what it has itself written, as behind a `key_by`.

It reads what is committed, and has no end until it is told to have one: that is the high watermark of that moment, as
in production. Control records and what was aborted have offsets too, and are passed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tests.simulation.broker import SimBroker
from tests.simulation.job import KAFKA_TOPICS, KEYS, OWN
from tests.simulation.kafka_clients import identity_of
from tests.simulation.own_text import mark_of, plain_text, told_time
from tests.simulation.source import AT_ONCE, LOOKS_AGAIN_MS, SimGroup, SimRow, SplitReader
from twopc.context import JobContext, SubtaskContext
from twopc.errors import Unavailable
from twopc.kafka.positions.course import Course
from twopc.kafka.positions.partition_position import (
    PartitionPosition,
    PartitionSplit,
    input_of,
    is_in,
    oldest,
    partition_positions,
)
from twopc.kafka.repartition_planner import course_of
from twopc.kafka.topic_partition import Position, TopicPartition
from twopc.kafka.topics.topic_identity import TopicIdentity
from twopc.protocol.facts import CheckpointMetadata, SplitPosition
from twopc.protocol.ids import AttemptId
from twopc.record import Batch
from twopc.source import Follower, Source, SourcePlanner, Split
from twopc.time_marks import HEADER, as_read

TOPIC = KAFKA_TOPICS[OWN]


@dataclass(frozen=True, slots=True)
class OwnRow(SimRow):
    """A record that the job has written."""

    text: str

    def key(self) -> bytes | None:
        return None if self._mark is not None else b"k%d" % (int(self.text.split(":")[1]) % KEYS)

    def value(self) -> str | None:
        return None if self._mark is not None else plain_text(self.text)

    def headers(self) -> Any:
        told = told_time(self.text) if self._mark is None else self._mark
        return None if told is None else [(HEADER, b"%d" % told)]

    @property
    def _mark(self) -> int | None:
        return mark_of(self.text)


class OwnReader(SplitReader):
    """Reads up to the last stable offset; once it is bounded, to its stops."""

    def __init__(
        self, broker: SimBroker, identity: TopicIdentity, splits: Sequence[PartitionSplit], attempt: AttemptId
    ) -> None:
        super().__init__(broker, identity, splits, attempt)
        self._stops: dict[TopicPartition, int] | None = None

    def poll(self, timeout: float, most: int) -> Batch | None:
        if self._broker.away or not self._next:
            return None
        partition = self._world.pick(list(self._next))
        log = self._broker.partition_log(partition)
        if self._next[partition] < log.begin:
            raise Unavailable("simulated: what is to be read is deleted")
        end = min(log.last_stable_offset, (self._stops or {}).get(partition, log.last_stable_offset))
        if end <= self._next[partition]:
            return None
        passed = next(split.passed for split in self._splits if split.partition == partition)
        found = [
            (at, value) for at, value in log.committed(self._next[partition]) if at < end and not is_in(passed, at)
        ]
        taken = found[: min(most, AT_ONCE if self._world.calm else self._world.between(1, 3))]
        self._next[partition] = end if len(taken) == len(found) else taken[-1][0] + 1
        rows = [OwnRow(partition, at, value) for at, value in taken]
        return as_read(Batch(rows, [row.value() for row in rows], [row.key() for row in rows]))

    def caught_up(self) -> frozenset[str]:
        logs = {each: self._broker.partition_log(each) for each in self._next}
        return frozenset(str(each) for each, log in logs.items() if self._next[each] >= log.last_stable_offset)

    @property
    def arrives_in(self) -> int | None:
        """Milliseconds until a poll may find something; None if it never will."""
        return None if self.finished() else LOOKS_AGAIN_MS

    def bound(self) -> bool:
        if self._broker.away:
            raise Unavailable("simulated: nobody says where the topic ends")
        self._world.coverage["a later stage told to end"] += 1
        if self._stops is None:
            self._stops = {each: self._broker.partition_log(each).high_watermark for each in self._next}
            self._broker.bounded |= {(self._attempt, each): stop for each, stop in self._stops.items()}
        return True

    def finished(self) -> bool:
        return self._stops is not None and all(self._next[each] >= stop for each, stop in self._stops.items())


class OwnSource(Source, SourcePlanner):
    """The topic that the sink `own` writes to, from its first record."""

    inputs = (TOPIC,)
    has_marks = True

    def __init__(self, broker: SimBroker) -> None:
        self._broker = broker

    def open_planner(self, context: JobContext) -> SourcePlanner:
        return self

    def plan(self, restored: Mapping[str, SplitPosition], bounded: bool) -> list[Split]:
        assert not bounded, "what it has to read is not there yet"
        known = {held.partition: held for held in partition_positions(restored.values())}
        splits = []
        for number in range(len(self._broker.lanes)):
            partition = TopicPartition(TOPIC, number)
            start, passed = (known[partition].position, known[partition].passed) if partition in known else (0, ())
            if start < (begin := self._broker.partition_log(partition).begin):
                what = f"{partition} from {start} on, and it begins at {begin}"
                self._broker.world.violated("what was still to be read is deleted", what)
            splits.append(PartitionSplit(partition, self._broker.topic_id, Position(start), None, passed=passed))
        return [split.to_split() for split in splits]

    def on_course(self, restored: CheckpointMetadata) -> list[SplitPosition]:
        course = course_of(restored, TOPIC)
        own = partition_positions(held for held in restored.positions if input_of(held.split) == TOPIC)
        return [self._passing(course, held).to_split_position() for held in own]

    def _passing(self, course: Course, held: PartitionPosition) -> PartitionPosition:
        log, number = self._broker.partition_log(held.partition), held.partition.partition
        end = Position(log.high_watermark)
        between = range(*course.mixed(held, end))
        mixed = [(log.entries[at].producer_id, (Position(at), Position(at + 1))) for at in between]
        passing = course.passing(held, mixed, end)
        self._broker.world.coverage["passed over"] += passing.passed != ()
        self._broker.world.coverage["left to read besides"] += passing.position < course.last_end(number)
        return passing

    def forget(self, context: JobContext, kept: Sequence[SplitPosition]) -> None:
        if self._broker.away:
            raise Unavailable("simulated: nobody deletes what was read")
        for partition, held in oldest(kept).items():
            log = self._broker.partition_log(partition)
            self._broker.world.coverage["trimmed"] += log.begin < held.position
            log.begin = max(log.begin, held.position)

    def follower(self) -> Follower:
        return SimGroup(self._broker, TOPIC)

    def misses_some(self, attempt: AttemptId) -> bool:
        """All partitions are there from the beginning."""
        return False

    def unreadable(self, positions: Iterable[SplitPosition]) -> dict[SplitPosition, str]:
        return {}

    def input_of(self, split: str) -> str:
        return input_of(split)

    def open_reader(self, context: SubtaskContext, splits: Sequence[Split]) -> OwnReader:
        partitions = list(map(PartitionSplit.from_split, splits))
        return OwnReader(self._broker, identity_of(context, self._broker), partitions, context.attempt)
