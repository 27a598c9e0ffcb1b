"""The times of sources whose records meet others, behind a `key_by`, where event time counts.

Marks alone move time there (`marked_times`), and those tell how far these sources are, too. So each has a time under
each partition number: the greatest timestamp that has come. A record behind that is late where it would be late by it,
whenever the mark comes that says so.

Invariant: what was counted has gone through the graph whenever a snapshot is taken. No batch is cut behind this.
"""

from __future__ import annotations

from dataclasses import dataclass

from twopc.column import Over
from twopc.column_rows import Place, places_of, take
from twopc.operators.instance import OnePortInstance, OperatorContext
from twopc.operators.result import Result
from twopc.operators.step import Step
from twopc.operators.stored_numbers import StreamTimes
from twopc.operators.write_back_cache import KeyedStateStore
from twopc.record import Batch, Row
from twopc.stand_ins import StandIn
from twopc.time_marks import own_time


class SourceTimes:
    """Those of one subtask, and the records of the turn in hand that are behind them."""

    def __init__(self, store: KeyedStateStore) -> None:
        self._times = StreamTimes(store)
        self._behind: dict[Place, int] = {}

    def begin(self) -> None:
        """All of the last turn has gone through."""
        self._behind.clear()

    def count(self, source: str, batch: Batch, latest: int) -> None:
        """These records of a source come; none moves time further than `latest`."""
        behind = self._times.count(source, batch, latest)
        if behind:
            self._behind.update(zip(places_of(take(batch.rows, list(behind))), behind.values(), strict=True))

    def of(self, source: str, number: int) -> int | None:
        """Return the time of a source under a partition number; None before any."""
        return self._times.of(source, number).now

    def own_time(self, row: Row) -> int | None:
        """Return the time that a record is behind where it comes from; None for one that is not, or no record."""
        if self._behind and not isinstance(row, StandIn):
            (place,) = places_of([row])
            if (time := self._behind.get(place)) is not None:
                return time
        return own_time(row)

    def write_back(self) -> None:
        """Bring the store up to every record so far."""
        self._times.write_back()


@dataclass(frozen=True, slots=True)
class CountTime(Step):
    """The records of a source, as they are: they move its time."""

    source: str
    keeps_key = keeps_values = True
    operator = "source"

    def __str__(self) -> str:
        return f"the time of {self.source!r}"

    def open(self, context: OperatorContext) -> OnePortInstance:
        return _TimeCount(self.source, context)


class _TimeCount(OnePortInstance):
    def __init__(self, source: str, context: OperatorContext) -> None:
        self._source, self._times, self._latest = source, context.source_times, context.latest

    def process(self, batch: Batch, over: Over) -> Result:
        self._times.count(self._source, batch, self._latest())
        return Result(len(batch), batch)
