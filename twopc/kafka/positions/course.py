"""Which records of a topic of the job's own led to a checkpoint, and which were written since. Pure.

A job that goes back to an older checkpoint finds in such a topic what it had not read yet, beside what was made after
the checkpoint and is made again. Offsets tell the two apart, without clocks and without marks in the topic: when a
subtask has flushed what it wrote for a checkpoint, and writes no more yet, it asks where each partition ends, and says
by which producers it has written. So with checkpoint N and subtask S:

- what a producer of S wrote before S's end led to N; what it wrote from there on came later;
- a producer that no subtask names is one of an earlier attempt, all of which stands before every end, or wrote for the
  first time when its own subtask had asked: so the least of the ends separates the two. Where lost output is written
  again, some subtasks say it of an earlier checkpoint: if that is of an earlier attempt too, their ends don't count.

What stood in a partition already and belongs to another course, an earlier way back has found out: it is `passed` in
the positions of N.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from twopc.kafka.positions.partition_position import Gap, PartitionPosition
from twopc.kafka.topic_partition import Position
from twopc.protocol.ids import AttemptId


@dataclass(frozen=True, slots=True)
class Written:
    """What a subtask of an attempt says of a topic at a checkpoint.

    That is its producers' ids, and the end of each partition, by number.
    """

    attempt: AttemptId
    producers: tuple[int, ...] = ()
    ends: tuple[Position, ...] = ()

    def end(self, number: int) -> Position:
        """Return where this partition ended; one that was not there then had no records."""
        return self.ends[number] if number < len(self.ends) else Position(0)


class Course:
    """The course of the job up to one checkpoint, in one topic, by what each subtask says."""

    def __init__(self, written: Sequence[Written]) -> None:
        newest = max(each.attempt for each in written)
        self._newest = [each for each in written if each.attempt == newest]
        self._writer = {producer: each for each in written for producer in each.producers}

    def first_end(self, number: int) -> Position:
        """Return the offset in a partition before which nothing was written after the checkpoint."""
        return min(each.end(number) for each in self._newest)

    def last_end(self, number: int) -> Position:
        """Return the offset in a partition from which on all was written after the checkpoint."""
        return max(each.end(number) for each in self._newest)

    def mixed(self, held: PartitionPosition, end: Position) -> Gap:
        """Return the offsets from a position on where a record's producer says whether it led to the checkpoint."""
        number = held.partition.partition
        return max(self.first_end(number), held.position), min(self.last_end(number), end)

    def has(self, number: int, producer_id: int, offset: int) -> bool:
        """Whether what a producer wrote there led to the checkpoint."""
        writer = self._writer.get(producer_id)
        return offset < (self.first_end(number) if writer is None else writer.end(number))

    def passing(self, held: PartitionPosition, mixed: Iterable[tuple[int, Gap]], end: Position) -> PartitionPosition:
        """Return the position that passes over what was written after the checkpoint, in a partition up to its `end`.

        `mixed` are the batches at offsets that are that, each the producer's id and its offsets.
        """
        number = held.partition.partition
        later = [offsets for producer, offsets in mixed if not self.has(number, producer, offsets[0])]
        every = [*held.passed, *later, (self.last_end(number), end)]
        return replace(held, passed=_merged(gap for gap in every if gap[0] < gap[1] > held.position))


def _merged(gaps: Iterable[Gap]) -> tuple[Gap, ...]:
    """Return the same offsets in as few ranges as possible, in order."""
    merged: list[Gap] = []
    for first, end in sorted(gaps):
        if merged and first <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((first, end))
    return tuple(merged)
