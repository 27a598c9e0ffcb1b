"""Finds missing records of a transaction of which other records are there: torn, where the others are lost.

`cuts`, the input positions at which transactions ended, tell them where these are known. Otherwise the transactions
that were seen do: one that holds records made of input before a missing one's and after it, held that one too. So the
first or last record of a transaction counts as lost there.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from twopc.kafka.topic_partition import TopicPartition
from twopc.verify.expectation import Expectation
from twopc.verify.history import Transaction

Cuts = Mapping[TopicPartition, Iterable[int]]


class TransactionRanges:
    """Collects the input range of each transaction; then tells which missing records are torn off."""

    def __init__(self, expectation: Expectation, cuts: Cuts) -> None:
        self._expectation = expectation
        self._cuts = {partition: sorted(positions) for partition, positions in cuts.items()}
        self._reach: dict[tuple[Transaction, int], tuple[int, int]] = {}
        self._current: Transaction | None = None
        self._low: dict[int, int] = {}
        self._high: dict[int, int] = {}

    def note(self, transaction: Transaction, record: int) -> None:
        """Say that the transaction holds an expected record."""
        if transaction is not self._current:
            self._settle()
            self._current = transaction
        number, offset = self._expectation.partition_number(record), self._expectation.offset(record)
        if number not in self._low:
            self._low[number] = self._high[number] = offset
        elif offset < self._low[number]:
            self._low[number] = offset
        elif offset > self._high[number]:
            self._high[number] = offset

    def torn(self, missing: Sequence[int]) -> set[int]:
        """Return those of the missing records that are a part of what was one transaction."""
        self._settle()
        by_cuts = [record for record in missing if self._expectation.source(record).partition in self._cuts]
        reached = self._merged()
        rest = [record for record in missing if self._expectation.source(record).partition not in self._cuts]
        return self._cut_off(by_cuts) | {record for record in rest if self._is_reached(reached, record)}

    def _settle(self) -> None:
        if self._current is not None:
            for number, low in self._low.items():
                before = self._reach.get((self._current, number), (low, low))
                self._reach[self._current, number] = min(before[0], low), max(before[1], self._high[number])
        self._current = None
        self._low, self._high = {}, {}

    def _cut_off(self, missing: Sequence[int]) -> set[int]:
        if not missing:
            return set()
        absent = Counter(self._interval(record) for record in missing)
        whole: Counter[tuple[int, int]] = Counter()
        for record in range(len(self._expectation)):
            if self._expectation.source(record).partition in self._cuts:
                whole[self._interval(record)] += 1
        return {record for record in missing if absent[self._interval(record)] < whole[self._interval(record)]}

    def _interval(self, record: int) -> tuple[int, int]:
        partition, offset = self._expectation.source(record)
        return self._expectation.partition_number(record), bisect_right(self._cuts[partition], offset)

    def _merged(self) -> dict[int, tuple[list[int], list[int]]]:
        """The reaches of each input partition, overlapping ones made one: their starts, and their last offsets."""
        merged: dict[int, tuple[list[int], list[int]]] = {}
        for (_, number), (low, high) in sorted(self._reach.items(), key=lambda item: item[1]):
            starts, ends = merged.setdefault(number, ([], []))
            if ends and low <= ends[-1]:
                ends[-1] = max(ends[-1], high)
            else:
                starts.append(low)
                ends.append(high)
        return merged

    def _is_reached(self, merged: Mapping[int, tuple[list[int], list[int]]], record: int) -> bool:
        starts, ends = merged.get(self._expectation.partition_number(record), ([], []))
        offset = self._expectation.offset(record)
        index = bisect_right(starts, offset) - 1
        return index >= 0 and offset <= ends[index]
