"""stream.window(...): what each window of each key comes to, by the number of the partition that the key was read from.

How it goes with time is that of `twopc.operators.event_time`; due are the windows that are over, grace included.

- A record goes into those of its windows that are not over; one that has none left is late. Which those are is the
  affair of the kind of windows (`twopc.operators.window_kind`).
- What a window comes to when it is over has the place of the record that moved time, and its own key: what goes wrong
  with it is not that record's error.
- A window that was told stays so, though the job is started again with a longer grace: up to which time windows are
  told is kept, and to whoever asks what is late, stream time is at least the grace behind that.
- Open windows are one value by key, in the order of their starts. A key that has any has an entry in the time queue, at
  the time at which the first of them is over, or before it. What is over is in neither.
- A record on which a function raises has changed nothing, stream time included.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from twopc.column import Over, user_code_error
from twopc.operators.event_time import NEVER, EventTimeOperator, TimedPartition
from twopc.operators.instance import OperatorContext
from twopc.operators.keyed import Run
from twopc.operators.result import Result, Work
from twopc.operators.stored_numbers import OpenWindows, ToldTime
from twopc.operators.window_kind import REMEMBERED, WINDOW_BYTES, Change, Open
from twopc.operators.window_kinds import kind_of
from twopc.operators.window_step import WindowAggregate
from twopc.operators.write_back_cache import KeyedStateStore
from twopc.record import Batch, Row
from twopc.stand_ins import KeyOnly
from twopc.state.key_form import legible
from twopc.state.whole_key import left_out, whole_key
from twopc.termination import TERMINATION
from twopc.windows import Window

NOTHING = Batch([], [])


class _Outputs:
    """The rows of a batch for one side output."""

    def __init__(self) -> None:
        self.rows: list[Row] = []
        self.keys: list[Any] = []
        self.windows: list[Any] = []
        self.timestamps: list[int | None] = []

    def put(self, row: Row, key: Any, window: Window, timestamp: int) -> None:
        self.rows.append(row)
        self.keys.append(key)
        self.windows.append(window)
        self.timestamps.append(timestamp)

    def batch(self) -> Batch:
        return Batch(self.rows, self.windows, self.keys, self.timestamps, [None] * len(self.rows))


class _Partition(TimedPartition):
    def __init__(self, operator: str, number: int, grace_ms: int, store: KeyedStateStore) -> None:
        super().__init__(operator, number, store)
        self._grace_ms = grace_ms
        self.told = ToldTime(operator, number, store)
        self.open = OpenWindows(operator, number, store)
        if self.time.now is None and self.open.now is None:
            self.open.begin()
        self.grown = 0
        """By how many windows more than `open` knows of."""
        self.all_told = NEVER if self.told.now is None else self.told.now + grace_ms
        """The stream time at which, with this grace, all is over that was told before this attempt."""

    def write_back(self) -> None:
        super().write_back()
        self.told.reach(self.time.now, self._grace_ms)
        self.told.write_back()
        self.open.write_back()


class WindowOperator(EventTimeOperator[_Partition]):
    """One windowed aggregation on one subtask; `late` are those that came too late for all of their windows."""

    def __init__(self, step: WindowAggregate, context: OperatorContext) -> None:
        self._operator, self._step, self._store = context.operator_id, step, context.store
        self._latest, self._own_time = context.latest, context.source_times.own_time
        self._kind = kind_of(step)
        self._cache = context.cache(step.name, self._kind)
        super().__init__(step, [self._cache], context)
        self._has_current = "current" in context.outputs
        self.late: int = 0
        # Behind a key_by no partition number has to follow others: marks come to all of them.
        self.idle_ms = None if context.by_marks else step.idle_ms
        self._outputs: dict[str, Batch] = {}
        self._final = self._current = _Outputs()
        self._late: list[int] = []

    @property
    def ports(self) -> Sequence[Work]:
        return (self.process,)

    def process(self, batch: Batch, over: Over) -> Result:
        """Take the records into their windows, up to where `over` stops; all that comes out does so at the sides."""
        taken, cause = self._take(batch, over)
        self.late += len(self._late)
        self._tell_all(batch.take(self._late))
        return Result(taken, batch.part(0, 0), cause)

    def open_windows(self, number: int) -> int | None:
        return self._opened(number).open.now

    def side_output(self, name: str) -> Batch:
        return self._outputs[name]

    def _new_partition(self, number: int) -> _Partition:
        return _Partition(self._operator, number, self._step.grace_ms, self._store)

    def _begin(self) -> None:
        self._final, self._current = _Outputs(), _Outputs()
        self._late = []

    def _run(self, run: Run, batch: Batch, begin: int, rest: Iterator[Any]) -> tuple[int, BaseException | None]:
        number, forms = run
        partition = self._opened(number)
        time, timers, all_told = partition.time, partition.timers, partition.all_told
        held, dirty = self._cache.of(number)
        change_of, stamps, keys, rows = self._kind.change, batch.timestamps, batch.keys, batch.rows
        latest = self._latest()
        index = begin
        # The forms come first: the other way round one value more would be taken.
        for form, value in zip(forms, rest, strict=False):
            stamp = stamps[index]
            now = self._time_at(time, stamp, latest)
            if stamp is None or now is None:
                return index - begin, self._fault(stamp, rows[index], latest)
            seen = max(now, all_told)
            late_by = self._lateness(rows[index], seen) if self._by_marks else seen
            try:
                change = change_of(held.get(form) or {}, stamp, late_by, value)
                left = left_out(keys[index])
            except TERMINATION:
                raise
            except BaseException as error:  # noqa: BLE001 - it is an error of the record in hand
                return index - begin, error
            self._move(time, now)
            if timers.earliest <= now and not self._let_go(partition, now, rows[index], rest):
                return index - begin, None
            if change is None:
                self._late.append(index)
            else:
                # What closed just now may have been the last that the key had.
                windows = held.get(form)
                if not windows:
                    windows = self._kind.begin(change, seen)
                    self._cache.begins(number, form)
                held[form] = dirty[form] = windows
                self._apply(change, windows, partition, form, left)
                if self._has_current:
                    self._tell(change, rows[index], keys[index], stamp)
                # A window that waits for a longer grace of before, and has grown, is over by the grace of now.
                if timers.earliest <= now:
                    self._let_go(partition, now, rows[index], None)
            index += 1
        return index - begin, None

    def _lateness(self, row: Row, seen: int) -> int:
        """Return the time by which a record is late, where marks move time: late where it comes from, late here."""
        own = self._own_time(row)
        return seen if own is None else max(seen, own)

    def _apply(self, change: Change, windows: Open, partition: _Partition, form: bytes, left: bytes) -> None:
        for start in change.gone:
            del windows[start]
        partition.grown -= len(change.gone)
        for start, entry in change.put.items():
            if start not in windows:
                closes = self._kind.closes(start, entry)
                if not windows or all(closes < self._kind.closes(*other) for other in windows.items()):
                    partition.timers.add(closes, form, left)
                partition.grown += start != REMEMBERED
            windows[start] = entry

    def _settle(self) -> None:
        for partition in self._partitions.values():
            partition.open.changed(partition.grown)
            self._cache.grew(WINDOW_BYTES * partition.grown)
            partition.grown = 0
        super()._settle()

    def _tell(self, change: Change, row: Row, key: Any, stamp: int) -> None:
        for start in sorted(change.put.keys() - {REMEMBERED}):
            self._current.put(row, key, self._kind.window(start, change.put[start]), stamp)

    def _passed(self) -> Result:
        self._tell_all(NOTHING)
        return Result(0, NOTHING)

    def _tell_all(self, late: Batch) -> None:
        self._outputs = {"final": self._final.batch(), "current": self._current.batch(), "late": late}

    def _let_go(self, partition: _Partition, now: int, row: Row, rest: Iterator[Any] | None) -> bool:
        try:
            return self._put_out(partition, now, row, rest)
        except ValueError as error:
            # Some are out and gone already, so nobody goes on behind it.
            raise user_code_error(row, str(self._step), error) from error

    def _put_out(self, partition: _Partition, now: int, row: Row, rest: Iterator[Any] | None) -> bool:
        number, timers, kind, put = partition.number, partition.timers, self._kind, self._final.put
        held, dirty = self._cache.of(number)
        for at, form, left in timers.take_due(now, rest):
            if form not in held:
                self._cache.fetch(number, (form,))
            windows: Open = held.get(form) or {}
            remembered = windows.get(REMEMBERED)
            over = kind.take_over(windows, at)
            if over:
                whose, key = KeyOnly(row, legible(form), at), whole_key(form, left)
                for start, entry in over:
                    window = kind.window(start, entry)
                    put(whose, key, window, window.end - kind.end_is_behind)
                partition.grown -= len(over)
            if windows:
                timers.add(min(kind.closes(*each) for each in windows.items()), form, left)
            if not windows:
                self._cache.ends(number, form)
            elif over or windows.get(REMEMBERED) != remembered:
                held[form] = dirty[form] = windows
        return timers.earliest > now
