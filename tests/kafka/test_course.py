"""What led to a checkpoint in a topic of the job's own, and what was written since: told by offsets and producers.

The last test plays jobs that write such a topic, crash, and go back to any of their checkpoints, again and again, and
holds what they would read against what they had written for that checkpoint.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import pytest

from twopc.errors import ConfigurationError
from twopc.kafka.positions.course import Course, Written
from twopc.kafka.positions.partition_position import Gap, PartitionPosition, PartitionSplit
from twopc.kafka.repartition_planner import course_of
from twopc.kafka.topic_partition import Position, TopicPartition
from twopc.kafka.topics.known_topics import KnownTopic, known_outputs
from twopc.protocol.checkpoints import CheckpointKind
from twopc.protocol.facts import CheckpointMetadata, StateHandle, SubtaskSnapshot
from twopc.protocol.ids import AttemptId, CheckpointId, SubtaskIndex

OWN = TopicPartition("j-k-repartition", 0)
ONE, TWO, THREE = 901, 902, 903


def written(*producers: int, end: int, attempt: int = 1) -> Written:
    return Written(AttemptId(attempt), producers, (Position(end),))


def at(position: int, *passed: tuple[int, int]) -> PartitionPosition:
    return PartitionPosition(OWN, "id", Position(position), passed=tuple(map(gap, passed)))


def gap(offsets: tuple[int, int]) -> Gap:
    return Position(offsets[0]), Position(offsets[1])


COURSE = Course([written(ONE, end=10), written(TWO, end=14)])


def test_a_producer_wrote_for_the_checkpoint_up_to_where_its_own_subtask_asked() -> None:
    assert [COURSE.has(0, ONE, offset) for offset in (9, 10)] == [True, False]
    assert [COURSE.has(0, TWO, offset) for offset in (13, 14)] == [True, False]


def test_of_a_producer_that_nobody_names_the_least_end_decides() -> None:
    assert [COURSE.has(0, THREE, offset) for offset in (9, 10, 13)] == [True, False, False]


def test_an_end_of_an_earlier_attempt_holds_for_its_own_producers_only() -> None:
    healed = Course([written(ONE, end=3, attempt=1), written(TWO, end=14, attempt=2)])
    assert [healed.has(0, ONE, 5), healed.has(0, THREE, 5), healed.has(0, THREE, 14)] == [False, True, False]


def test_a_partition_that_was_not_there_had_nothing() -> None:
    assert not COURSE.has(1, ONE, 0)


def test_what_is_passed_is_what_others_wrote_among_the_ends_and_all_behind_the_last() -> None:
    mixed = [(ONE, gap((10, 11))), (TWO, gap((11, 12))), (THREE, gap((12, 14)))]
    assert COURSE.passing(at(4), mixed, Position(20)) == at(4, (10, 11), (12, 20))
    assert COURSE.passing(at(4), mixed[:2], Position(14)) == at(4, (10, 11))


def test_what_was_passed_over_before_stays_so_until_it_is_behind() -> None:
    assert COURSE.passing(at(4, (2, 4), (6, 8)), [], Position(20)) == at(4, (6, 8), (14, 20))
    assert COURSE.passing(at(4, (6, 30)), [], Position(20)) == at(4, (6, 30))
    split = PartitionSplit(OWN, "id", Position(4), None, passed=(gap((6, 8)), gap((14, 20))))
    assert [split.at(Position(offset)).passed for offset in (7, 8, 20)] == [split.passed, (gap((14, 20)),), ()]


def checkpoint(*known: Written | None, finished: bool = False) -> CheckpointMetadata:
    snapshots = tuple(
        SubtaskSnapshot.of(
            SubtaskIndex(index),
            [PartitionPosition(TopicPartition(OWN.topic, index), "id", Position(7)).to_split_position()],
            StateHandle.inline("path", {}, 0, 0),
            (),
            finished,
            outputs=known_outputs({OWN.topic: KnownTopic("id", 2, each)}, ()),
        )
        for index, each in enumerate(known)
    )
    kind = CheckpointKind.PERIODIC
    return CheckpointMetadata("j", CheckpointId(4), AttemptId(3), len(snapshots), kind, 0, 0, snapshots)


def test_all_subtasks_of_a_checkpoint_tell_its_course() -> None:
    course = course_of(checkpoint(written(ONE, end=10), written(TWO, end=14)), OWN.topic)
    assert (course.first_end(0), course.last_end(0), course.has(0, TWO, 13)) == (10, 14, True)


def test_one_of_an_earlier_version_is_refused_with_the_ways_on() -> None:
    with pytest.raises(ConfigurationError, match=r"checkpoint 4 .*j-k-repar.*earlier version.*--from none"):
        course_of(checkpoint(written(ONE, end=10), None), OWN.topic)


def test_one_of_an_earlier_version_with_which_all_was_read_ends_at_its_positions() -> None:
    course = course_of(checkpoint(None, None, finished=True), OWN.topic)
    assert [course.last_end(number) for number in (0, 1)] == [7, 7]


@dataclass
class Record:
    producer: int
    name: int
    is_committed: bool = False


@dataclass
class Checkpoint:
    """`course` is what was written for it, `read` what of that was read, `at` where each partition is read on."""

    number: int
    written: list[Written] = field(default_factory=list)
    open: list[list[Record]] = field(default_factory=list)
    course: list[list[int]] = field(default_factory=lambda: [[], []])
    read: list[list[int]] = field(default_factory=lambda: [[], []])
    at: list[PartitionPosition] = field(default_factory=list)


class Writer:
    """A subtask: its producers take turns, one for each checkpoint."""

    def __init__(self, dice: random.Random) -> None:
        self.unused = [dice.randrange(10**9) for _ in range(40)]
        self.used: dict[int, int] = {}
        """Each producer that has written, with the checkpoint that it wrote for last."""
        self.transaction: list[Record] = []
        self.wrote: list[list[int]] = [[], []]
        self.taken = 0

    def next_producer(self, completed: int = 0) -> int:
        """Return one that has written nothing since before the last completed checkpoint, if there is one."""
        return next((each for each, last in self.used.items() if last < completed), None) or self.unused.pop()


class Play:
    """A job of one topic with two partitions; each attempt has one to three subtasks."""

    def __init__(self, seed: int) -> None:
        self.dice = random.Random(seed)
        self.logs: list[list[Record]] = [[], []]
        self.names = iter(range(10**9))
        begin = [PartitionPosition(TopicPartition(OWN.topic, number), "id", Position(0)) for number in range(2)]
        self.kept = [Checkpoint(0, [Written(AttemptId(0), (), (Position(0), Position(0)))], [], at=begin)]
        self.number = 0

    def attempt(self, number: int) -> None:
        """Restore a checkpoint, mostly an older one; then write, read and take checkpoints, two at a time at most."""
        restored = self.dice.choice([self.kept[-1], *self.kept[-4:]])
        self.splits = list(self._begins(restored))
        for each, split in enumerate(self.splits):
            left = [record.name for record in self._visible(split, len(self.logs[each]))]
            assert restored.read[each] + left == restored.course[each], f"restored {restored.number}"
        self.restored, self.at = restored, [Position(split.start) for split in self.splits]
        self.read = [list(names) for names in restored.read]
        self.writers = [Writer(self.dice) for _ in range(self.dice.randint(1, 3))]
        self.producers = [writer.next_producer() for writer in self.writers]
        self.pending: list[Checkpoint] = []
        for _ in range(self.dice.randint(0, 60)):
            match self.dice.randrange(4):
                case 0:
                    self._read()
                case 1:
                    self._checkpoint(number)
                case _:
                    self._write()
        if self.dice.random() < 0.5:
            self.pending.clear()

    def _begins(self, restored: Checkpoint) -> Iterator[PartitionSplit]:
        course = Course(restored.written)
        for number, held in enumerate(restored.at):
            log = self.logs[number]
            first, last = max(course.first_end(number), held.position), course.last_end(number)
            mixed = [(log[offset].producer, gap((offset, offset + 1))) for offset in range(first, last)]
            to = course.passing(held, mixed, Position(len(log)))
            yield PartitionSplit(to.partition, "id", to.position, None, passed=to.passed)

    def _visible(self, split: PartitionSplit, end: int) -> Iterator[Record]:
        for offset in range(split.start, end):
            record = self.logs[split.partition.partition][offset]
            if record.is_committed and not any(first <= offset < end for first, end in split.passed):
                yield record

    def _write(self) -> None:
        index = self.dice.randrange(len(self.writers))
        number = self.dice.randrange(2)
        record = Record(self.producers[index], next(self.names))
        self.logs[number].append(record)
        self.writers[index].transaction.append(record)
        self.writers[index].wrote[number].append(record.name)

    def _read(self) -> None:
        """Read on up to the first record that is open."""
        number = self.dice.randrange(2)
        log, ours = self.logs[number], {id(each) for writer in self.writers for each in writer.transaction}
        ours |= {id(record) for pending in self.pending for part in pending.open for record in part}
        split = self.splits[number]
        while self.at[number] < len(log) and id(log[self.at[number]]) not in ours:
            here = PartitionSplit(split.partition, "id", self.at[number], None, passed=split.passed)
            self.read[number] += [record.name for record in self._visible(here, self.at[number] + 1)]
            self.at[number] = Position(self.at[number] + 1)

    def _checkpoint(self, attempt: int) -> None:
        """Trigger one, or have a subtask take the next that it has not taken yet; the last one completes it."""
        late = [writer for writer in self.writers if writer.taken < len(self.pending)]
        if len(self.pending) < 2 and (not late or self.dice.random() < 0.3):
            self.number += 1
            self.pending.append(Checkpoint(self.number, at=[split.at(Position(0)) for split in self.splits]))
            return
        if late:
            self._take(self.dice.choice(late), attempt)

    def _take(self, writer: Writer, attempt: int) -> None:
        taken, index = self.pending[writer.taken], self.writers.index(writer)
        if writer.transaction:
            writer.used[self.producers[index]] = taken.number
            taken.open.append(writer.transaction)
            writer.transaction = []
            self.producers[index] = writer.next_producer(self.kept[-1].number)
        ends = tuple(Position(len(log)) for log in self.logs)
        taken.written.append(Written(AttemptId(attempt), tuple(writer.used), ends))
        for number in range(2):
            taken.course[number] += writer.wrote[number]
            if number % len(self.writers) == index:
                taken.read[number] = list(self.read[number])
                taken.at[number] = self.splits[number].at(self.at[number])
        writer.taken += 1
        if len(taken.written) == len(self.writers):
            self._complete(taken)

    def _complete(self, taken: Checkpoint) -> None:
        assert taken is self.pending.pop(0)
        for writer in self.writers:
            writer.taken -= 1
        for record in (record for part in taken.open for record in part):
            record.is_committed = True
        for number in range(2):
            place = {record.name: offset for offset, record in enumerate(self.logs[number])}
            taken.course[number] = self.restored.course[number] + sorted(taken.course[number], key=place.__getitem__)
        self.kept.append(taken)


@pytest.mark.parametrize("seeds", [range(150), range(150, 300)])
def test_forth_and_back_and_forth_again_all_that_led_to_a_checkpoint_is_read_once(seeds: Sequence[int]) -> None:
    went_back = 0
    for seed in seeds:
        play = Play(seed)
        for number in range(1, 8):
            play.attempt(number)
        went_back += len(play.kept) > 3
    assert went_back > 50, "enough of them have several checkpoints to choose from"
