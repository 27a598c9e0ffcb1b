"""The gaps that compaction leaves in a log: offsets with neither record nor marker."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from twopc.kafka.input.batches import LogBatch
from twopc.kafka.topic_partition import TopicPartition


class CompactionGaps:
    """Takes the batches of a log one after the other, from an offset on; `count` is how many offsets are empty."""

    def __init__(self, first: int) -> None:
        self._next = first
        self.count = 0

    def note(self, batch: LogBatch) -> None:
        self.count += max(0, batch.first - self._next) + (batch.last - batch.first + 1 - batch.records)
        self._next = batch.last + 1


def count_gaps(first: int, batches: Iterable[LogBatch]) -> int:
    """Return how many offsets of a log are empty."""
    holes = CompactionGaps(first)
    for batch in batches:
        holes.note(batch)
    return holes.count


def compaction(role: str, empty: Mapping[TopicPartition, int]) -> str | None:
    """Say what was compacted away; None if nothing was."""
    which = ", ".join(f"{count} offsets of {partition}" for partition, count in sorted(empty.items()) if count)
    return f"the {role} was compacted: {which} hold no record any more" if which else None
