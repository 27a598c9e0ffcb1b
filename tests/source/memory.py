"""A source in memory: what the contract asks for, and nothing else."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from twopc import Batch
from twopc.connect import (
    JobContext,
    Row,
    Source,
    SourcePlanner,
    SourceReader,
    Split,
    SplitPosition,
    SubtaskContext,
)
from twopc.testing.rows import InputRow


@dataclass
class MemorySource(Source, SourcePlanner):
    """Lists that may grow; a position is how many elements were read."""

    lists: list[list[bytes]] = field(default_factory=lambda: [[], []])

    def open_planner(self, context: JobContext) -> SourcePlanner:
        return self

    def plan(self, restored: Mapping[str, SplitPosition], bounded: bool) -> list[Split]:
        return [self._split(number, restored.get(f"list-{number}"), bounded) for number in range(len(self.lists))]

    def _split(self, number: int, restored: SplitPosition | None, bounded: bool) -> Split:
        start = 0 if restored is None else restored.position
        return Split(f"list-{number}", number, start, len(self.lists[number]) if bounded else None)

    def open_reader(self, context: SubtaskContext, splits: Sequence[Split]) -> SourceReader:
        return MemoryReader(self.lists, splits)

    def precedes(self, position: SplitPosition, later: SplitPosition) -> bool:
        return bool(position.position < later.position)


class MemoryReader(SourceReader):
    """Reads its lists in turn."""

    def __init__(self, lists: list[list[bytes]], splits: Sequence[Split]) -> None:
        self._lists = lists
        self._splits = splits
        self._read = {split.partition: split.start for split in splits}
        self._stops = {split.partition: split.stop for split in splits}

    def poll(self, timeout: float, most: int) -> Batch | None:
        for number, start in self._read.items():
            values = self._lists[number][start : self._stops[number]][:most]
            if values:
                self._read[number] = start + len(values)
                rows = [InputRow(each, partition_=number, offset_=start + at) for at, each in enumerate(values)]
                return Batch(rows, values)
        return None

    def positions(self, waiting: Iterable[Row] = ()) -> tuple[SplitPosition, ...]:
        read = dict(self._read)
        for row in waiting:
            number = row.partition() or 0
            read[number] = min(read[number], row.offset() or 0)
        return tuple(SplitPosition(each.id, each.partition, read[each.partition]) for each in self._splits)

    def bound(self) -> bool:
        for number, stop in self._stops.items():
            self._stops[number] = len(self._lists[number]) if stop is None else stop
        return True

    def finished(self) -> bool:
        return all(stop is not None and self._read[number] >= stop for number, stop in self._stops.items())
