"""Judges a job's output against its input while it grows: what a `read_committed` reader must never see, by name.

Each output record says which record of the input made it, and which process wrote it (`Mark`). While records come in,
every lane is held against the input; `finish` adds what only the end can tell, and what only the boundaries of the
transactions can: `cuts`, the positions of each input partition at which a transaction ended.

What is seen is kept as numbers, not as records: a million of them cost little.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from itertools import pairwise

from tests.counting.numbered_input import NumberedInput
from twopc.testing.topics import Read

MOST_FINDINGS = 50


class Fault(Enum):
    """The faults of an output."""

    LOST = "lost"
    DUPLICATED = "duplicated"
    REORDERED = "reordered"
    GAP = "gap"
    TORN = "torn"
    ABORTED = "aborted"
    FOREIGN = "foreign"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong, and where."""

    fault: Fault
    text: str

    def __str__(self) -> str:
        return f"{self.fault.value}: {self.text}"


@dataclass(frozen=True, slots=True)
class Mark:
    """The mark of an output record: its lane, its place in it from 0, and who wrote it."""

    lane: int
    place: int
    writer: str = ""


class Verifier:
    """Sees each output partition in the order of its offsets, once; `findings` holds what is wrong so far."""

    def __init__(self, source: NumberedInput, mark: Callable[[Read], Mark | None]) -> None:
        self._source = source
        self._mark = mark
        self._next = [0] * len(source.keys)
        self._skipped: list[set[int]] = [set() for _ in source.keys]
        self._writers: list[list[tuple[int, str]]] = [[] for _ in source.keys]
        self._lanes_of_output: dict[int, set[int]] = defaultdict(set)
        self._visible: set[tuple[tuple[int, int], ...]] = set()
        self._counts: Counter[Fault] = Counter()
        self.findings: list[Finding] = []
        self.seen = 0

    def see(self, read: Read) -> None:
        """Hold the next record of an output partition against the input."""
        self.seen += 1
        mark = self._mark(read)
        if mark is None or not 0 <= mark.place < self._source.size(mark.lane):
            self._report(Fault.FOREIGN, f"{_where(read)} is nothing that the input makes: {read.value!r}")
            return
        self._lanes_of_output[read.partition].add(mark.lane)
        expected = self._next[mark.lane]
        if mark.place != expected:
            self._out_of_turn(read, mark, expected)
        if mark.place < expected:
            return
        self._next[mark.lane] = mark.place + 1
        writers = self._writers[mark.lane]
        if not writers or writers[-1][1] != mark.writer:
            writers.append((mark.place, mark.writer))

    def caught_up(self, partition: int) -> None:
        """Say that nothing more of this output partition is visible now: every transaction must be there whole.

        To be called only for partitions that no two subtasks write to. Where they do, one's open transaction hides a
        part of what the other has committed after it, as Kafka has it.
        """
        lanes = sorted(self._lanes_of_output[partition])
        self._visible.add(tuple((lane, self._next[lane]) for lane in lanes))

    def finish(self, cuts: Mapping[int, Iterable[int]] | None = None) -> list[Finding]:
        """Judge the whole, once the reader is at the end for good; return all findings."""
        spans = _Spans(self._source, cuts or {})
        self._judge_missing(spans)
        if cuts is not None:
            self._judge_views(spans)
            self._judge_writers(spans)
        return self.findings

    def _out_of_turn(self, read: Read, mark: Mark, expected: int) -> None:
        name = self._name(mark.lane, mark.place)
        if mark.place > expected:
            self._skipped[mark.lane].update(range(expected, mark.place))
            self._report(Fault.GAP, f"{_where(read)} is {name}, where place {expected} is next")
        elif mark.place in self._skipped[mark.lane]:
            self._skipped[mark.lane].discard(mark.place)
            self._report(Fault.REORDERED, f"{_where(read)} is {name}, after place {expected - 1}")
        else:
            self._report(Fault.DUPLICATED, f"{_where(read)} is {name} again")

    def _judge_missing(self, spans: _Spans) -> None:
        """What of a transaction is missing while the rest of it is there makes it torn, not lost."""
        missing: dict[tuple[int, int, int], list[str]] = defaultdict(list)
        for lane in self._source.lanes:
            tail = range(self._next[lane], self._source.size(lane))
            for place in (*sorted(self._skipped[lane]), *tail):
                missing[spans.around(lane, place)].append(self._name(lane, place))
        for (partition, start, end), names in missing.items():
            where = f"of input partition {partition}, {start} to {end}: {len(names)} of {end - start} missing"
            whole = len(names) == end - start or not spans.known
            self._report(Fault.LOST if whole else Fault.TORN, f"{where}, the first is {names[0]}")

    def _judge_views(self, spans: _Spans) -> None:
        for view in self._visible:
            for partition in range(self._source.partitions):
                mine = [each for each in view if self._source.partition_of(each[0]) == partition]
                self._judge_view(spans, partition, mine)

    def _judge_view(self, spans: _Spans, partition: int, view: list[tuple[int, int]]) -> None:
        seen = [self._source.position(lane, following - 1) for lane, following in view if following]
        if not seen:
            return
        _, _, end = spans.at(partition, max(seen))
        for lane, following in view:
            if following != (whole := self._source.before(lane, end)):
                self._report(
                    Fault.TORN,
                    f"of the transaction that ends at {end} of input partition {partition}, only a part was visible: "
                    f"{following} of key {self._source.keys[lane]!r}, not {whole}",
                )
                return

    def _judge_writers(self, spans: _Spans) -> None:
        for partition in range(self._source.partitions):
            earlier: list[str] = []
            for start, end in spans.of(partition):
                wrote = {writer for lane in self._source.lanes_of(partition) for writer in self._of(lane, start, end)}
                if len(wrote) > 1:
                    self._report(
                        Fault.ABORTED,
                        f"input {start} to {end} of partition {partition} went into one transaction, but "
                        f"{len(wrote)} processes wrote it: {', '.join(sorted(wrote))}",
                    )
                elif wrote and not (earlier and earlier[-1] in wrote):
                    (writer,) = wrote
                    if writer in earlier:
                        self._report(
                            Fault.ABORTED,
                            f"input {start} to {end} of partition {partition}: {writer} wrote after another had "
                            "taken over from it",
                        )
                    earlier.append(writer)

    def _of(self, lane: int, start: int, end: int) -> set[str]:
        """Who wrote the lane's records between two positions of its input partition."""
        first, stop = self._source.before(lane, start), self._source.before(lane, end)
        if first == stop:
            return set()
        writers = self._writers[lane]
        begin = max(0, bisect_right(writers, first, key=lambda each: each[0]) - 1)
        return {writer for place, writer in writers[begin:] if place < stop}

    def _name(self, lane: int, place: int) -> str:
        return f"place {place} of key {self._source.keys[lane]!r} (number {self._source.number(lane, place)})"

    def _report(self, fault: Fault, text: str) -> None:
        self._counts[fault] += 1
        if self._counts[fault] <= MOST_FINDINGS:
            self.findings.append(Finding(fault, text))


class _Spans:
    """The transactions of each input partition, as ranges of its positions; one range where nothing is known."""

    def __init__(self, source: NumberedInput, cuts: Mapping[int, Iterable[int]]) -> None:
        self.known = bool(cuts)
        self._edges = {
            partition: sorted({0, source.end(partition), *cuts.get(partition, ())})
            for partition in range(source.partitions)
        }
        self._source = source

    def of(self, partition: int) -> list[tuple[int, int]]:
        edges = self._edges[partition]
        return list(pairwise(edges))

    def at(self, partition: int, position: int) -> tuple[int, int, int]:
        """The input partition, and the range of it that holds this position."""
        edges = self._edges[partition]
        index = bisect_right(edges, position)
        return partition, edges[index - 1], edges[index]

    def around(self, lane: int, place: int) -> tuple[int, int, int]:
        return self.at(self._source.partition_of(lane), self._source.position(lane, place))


def _where(read: Read) -> str:
    return f"{read.topic}[{read.partition}]@{read.offset}"
