"""Windows, one record after the other."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from heapq import heappop, heappush
from typing import Any

from twopc.operators.instance import OperatorContext
from twopc.operators.result import Result, Work
from twopc.operators.window_step import WindowAggregate
from twopc.record import Batch, Row
from twopc.stand_ins import KeyOnly
from twopc.state.key_form import legible
from twopc.verify.plain.kinds import Change, KeyWindows, windows_of_a_key
from twopc.verify.plain.timed import BEFORE_ALL, PlainTimed
from twopc.windows import Window

Told = list[tuple[Row, Any, Window, int]]
"""What goes out: of which row, under which key, the window, and its timestamp."""

Due = tuple[int, bytes, int]
"""When a window is over, the form of its key, and its start: in this order windows go out."""


class PlainWindows(PlainTimed):
    """One windowed aggregation."""

    def __init__(self, step: WindowAggregate, context: OperatorContext) -> None:
        super().__init__(step, context)
        new = windows_of_a_key(step)
        self._keys: defaultdict[int, defaultdict[bytes, KeyWindows]] = defaultdict(lambda: defaultdict(new))
        self._due: defaultdict[int, list[Due]] = defaultdict(list)
        self._begin()

    @property
    def ports(self) -> Sequence[Work]:
        return (self._process,)

    def side_output(self, name: str) -> Batch:
        return self._late if name == "late" else _batch(self._final if name == "final" else self._current)

    def _begin(self) -> None:
        self._final: Told = []
        self._current: Told = []
        self._late_ones: list[int] = []

    def _result(self, batch: Batch, taken: int, cause: BaseException | None) -> Result:
        self._late = batch.take(self._late_ones)
        return Result(taken, batch.first(0), cause)

    def _take(self, batch: Batch, index: int, form: bytes, value: Any) -> None:
        row, key = batch.rows[index], batch.keys[index]
        number = row.partition() or 0
        stamp, now = self._time_at(number, row, batch.timestamps[index])
        own = self._context.source_times.own_time(row) if self._context.by_marks else None
        seen = now if own is None else max(now, own)
        windows = self._keys[number][form]
        change = windows.change(stamp, seen, value)
        self._move(number, now, row)
        if change is None:
            self._late_ones.append(index)
            return
        if not windows.open:
            windows.key = key
            windows.begin(now)
        windows.took(stamp, seen, value)
        self._apply(number, form, windows, change)
        for start in sorted(start for start, each in change.items() if each is not None):
            self._current.append((row, key, windows.window(start), stamp))

    def _apply(self, number: int, form: bytes, windows: KeyWindows, change: Change) -> None:
        before = {start: windows.open.pop(start, None) for start in change}
        for start, each in change.items():
            if each is not None:
                windows.open[start] = each
                if (other := before[start]) is None or other.closes != each.closes:
                    heappush(self._due[number], (each.closes, form, start))

    def _latest(self, number: int) -> int:
        return max((closes for closes, _, _ in self._due[number]), default=BEFORE_ALL)

    def _close(self, number: int, now: int, row: Row) -> None:
        due = self._due[number]
        while due and due[0][0] <= now:
            closes, form, start = heappop(due)
            windows = self._keys[number][form]
            over = windows.open.get(start)
            # One that has grown since is over later, and one that has become part of another is none.
            if over is not None and over.closes == closes:
                told = windows.window(start)
                self._final.append((KeyOnly(row, legible(form), closes), windows.key, told, told.end - windows.last_ms))
                del windows.open[start]
                windows.ended(over)


def _batch(told: Told) -> Batch:
    rows, keys, windows, timestamps = map(list, zip(*told, strict=True)) if told else ([], [], [], [])
    return Batch(rows, windows, keys, timestamps, [None] * len(rows))
