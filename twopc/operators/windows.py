"""stream.window(...): what each window of each key comes to, by the number of the partition that the key was read from.

- Under one partition number records are seen in order. Each moves the stream time to its timestamp if that is greater;
  the windows that are over by then, grace included, come out before the record is counted, in the order of their ends.
- A record goes into those of its windows that are not over; one that has none left is late. Which those are is the
  affair of the kind of windows (`twopc.operators.window_kind`).
- What a window comes to when it is over has the place of the record that moved time, and its own key: what goes wrong
  with it is not that record's error.
- What closes at one record may be cut, as a loop over records: the record waits then, and the rest closes before it.
- A window that was told stays so, though the job is started again with a longer grace: up to which time windows are
  told is kept, and to whoever asks what is late, stream time is at least the grace behind that.
- Open windows are one value by key, in the order of their starts. A key that has any has an entry in the time queue, at
  the time at which the first of them is over, or before it. What is over is in neither.
- So outputs and states depend on the records of a partition number alone, not on where batches end.
- A record on which a function raises has changed nothing, stream time included.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from twopc.clock import LATEST_MS
from twopc.column import Over, user_code_error
from twopc.operators.instance import OperatorContext, TimedInstance
from twopc.operators.keyed import KeyForms, Run, partition_runs
from twopc.operators.result import Result, Work
from twopc.operators.stored_numbers import OpenWindows, StreamTime, ToldTime
from twopc.operators.time_bound import too_far_ahead, without_time
from twopc.operators.time_queue import TimeQueue
from twopc.operators.window_kind import REMEMBERED, WINDOW_BYTES, Change, Open
from twopc.operators.window_kinds import kind_of
from twopc.operators.window_step import WindowAggregate
from twopc.operators.write_back_cache import KeyedStateStore
from twopc.record import Batch, Row
from twopc.stand_ins import KeyOnly, PassedTime
from twopc.state.key_form import legible
from twopc.state.layout import TIMERS, StateName
from twopc.state.whole_key import left_out, whole_key
from twopc.termination import TERMINATION
from twopc.windows import Window

NOTHING = Batch([], [])

_NEVER = -(2**63)
"""Before any time."""


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


class _Partition:
    """The operator's own part of one partition number, beside the open windows."""

    def __init__(self, operator: str, number: int, grace_ms: int, store: KeyedStateStore) -> None:
        self.number = number
        self.time = StreamTime(operator, number, store)
        self.told = ToldTime(operator, number, store)
        self.closings = TimeQueue(StateName(operator, TIMERS), number, store)
        self.open = OpenWindows(operator, number, store)
        if self.time.now is None:
            self.open.begin()
        self.all_told = _NEVER if self.told.now is None else self.told.now + grace_ms
        """The stream time at which, with this grace, all is over that was told before this attempt."""

    def write_back(self, grace_ms: int) -> None:
        """Bring the store up to it."""
        self.told.reach(self.time.now, grace_ms)
        self.told.write_back()
        self.time.write_back()
        self.closings.write_back()
        self.open.write_back()


class WindowOperator(TimedInstance):
    """One windowed aggregation on one subtask; `late` are those that came too late for all of their windows."""

    def __init__(self, step: WindowAggregate, context: OperatorContext) -> None:
        self._operator, self._step, self._store = context.operator_id, step, context.store
        self._latest = context.latest
        self._kind = kind_of(step)
        self._key_forms = KeyForms(step)
        self._cache = context.cache(step.name, self._kind)
        self._partitions: dict[int, _Partition] = {}
        self._has_current = "current" in context.outputs
        self.late: int = 0
        self.idle_ms = step.idle_ms
        self._outputs: dict[str, Batch] = {}
        self._final = self._current = _Outputs()
        self._failed = False

    @property
    def ports(self) -> Sequence[Work]:
        return (self.process,)

    def process(self, batch: Batch, over: Over) -> Result:
        """Take the records into their windows, up to where `over` stops; all that comes out does so at the sides."""
        keys, bad_key = self._key_forms.of(batch)
        self._final, self._current = _Outputs(), _Outputs()
        late: list[int] = []
        taken = 0
        cause: BaseException | None = None
        # With one more than there are: while that is to come, nobody has cut the loop.
        rest = over([*batch.values, None])
        self._failed = True
        for number, run in partition_runs(batch.rows[: len(keys)], keys):
            self._cache.fetch(number, run)
            counted, cause = self._run((number, run), batch, taken, rest, late)
            taken += counted
            if counted < len(run):
                break
        self._failed = False
        self._settle()
        self.late += len(late)
        self._outputs = {"final": self._final.batch(), "current": self._current.batch(), "late": batch.take(late)}
        return Result(taken, batch.part(0, 0), bad_key if taken == len(keys) else cause)

    def pass_time(self, number: int, to: int) -> Result:
        self._final, self._current = _Outputs(), _Outputs()
        self._advance(self._opened(number), to)
        return self._passed()

    def drain(self, number: int) -> Result:
        self._final, self._current = _Outputs(), _Outputs()
        partition = self._opened(number)
        while (latest := partition.closings.latest()) is not None:
            self._advance(partition, latest)
        return self._passed()

    def stream_time(self, number: int) -> int | None:
        return self._opened(number).time.now

    def open_windows(self, number: int) -> int | None:
        return self._opened(number).open.now

    def side_output(self, name: str) -> Batch:
        return self._outputs[name]

    def write_back(self) -> None:
        assert not self._failed, "a batch failed half-way, so the states of this attempt are of no use"
        self._cache.write_back()
        for partition in self._partitions.values():
            partition.write_back(self._step.grace_ms)

    def _run(
        self, run: Run, batch: Batch, begin: int, rest: Iterator[Any], late: list[int]
    ) -> tuple[int, BaseException | None]:
        """Take the records of a run; return how many, and what was raised on the one behind those."""
        number, forms = run
        partition = self._opened(number)
        time, closings, all_told = partition.time, partition.closings, partition.all_told
        held, dirty = self._cache.of(number)
        change_of, stamps, rows = self._kind.change, batch.timestamps, batch.rows
        latest = self._latest()
        index = begin
        # The forms come first: the other way round one value more would be taken.
        for form, value in zip(forms, rest, strict=False):
            stamp = stamps[index]
            if stamp is None or stamp > LATEST_MS:
                return index - begin, without_time(rows[index], stamp, self._step)
            now = stamp if time.now is None or stamp > time.now else time.now
            if stamp > latest and now == stamp:
                return index - begin, too_far_ahead(rows[index], stamp, latest, self._step)
            try:
                change = change_of(held.get(form) or {}, stamp, now if now > all_told else all_told, value)
                left = left_out(batch.keys[index])
            except TERMINATION:
                raise
            except BaseException as error:  # noqa: BLE001 - it is an error of the record in hand
                return index - begin, error
            time.now = now
            if closings.earliest <= now and not self._close(partition, now, rows[index], rest):
                return index - begin, None
            if change is None:
                late.append(index)
            else:
                # What closed just now may have been the last that the key had.
                held[form] = dirty[form] = windows = held.get(form) or {}
                self._apply(change, windows, partition, form, left)
                if self._has_current:
                    self._tell(change, rows[index], batch.keys[index], stamp)
                # A window that waits for a longer grace of before, and has grown, is over by the grace of now.
                if closings.earliest <= now:
                    self._close(partition, now, rows[index], None)
            index += 1
        return index - begin, None

    def _apply(self, change: Change, windows: Open, partition: _Partition, form: bytes, left: bytes) -> None:
        before = _number(windows)
        for start in change.gone:
            del windows[start]
        for start, entry in change.put.items():
            if start not in windows:
                closes = self._kind.closes(start, entry)
                if all(closes < self._kind.closes(*other) for other in windows.items()):
                    partition.closings.add(closes, form, left)
            windows[start] = entry
        if more := _number(windows) - before:
            self._grew(partition, more)

    def _grew(self, partition: _Partition, more: int) -> None:
        partition.open.changed(more)
        self._cache.grew(WINDOW_BYTES * more)

    def _tell(self, change: Change, row: Row, key: Any, stamp: int) -> None:
        for start in sorted(change.put.keys() - {REMEMBERED}):
            self._current.put(row, key, self._kind.window(start, change.put[start]), stamp)

    def _passed(self) -> Result:
        self._settle()
        self._outputs = {"final": self._final.batch(), "current": self._current.batch(), "late": NOTHING}
        return Result(0, NOTHING)

    def _advance(self, partition: _Partition, to: int) -> None:
        time = partition.time
        time.now = to if time.now is None else max(time.now, to)
        self._failed = True
        self._close(partition, time.now, PassedTime(partition.number), None)
        self._failed = False

    def _close(self, partition: _Partition, now: int, row: Row, rest: Iterator[Any] | None) -> bool:
        """Put out the windows that are over at this time, and forget them: all, or as many as go before a cut.

        Return whether it was all. The record that moved time there is not taken before.
        """
        try:
            return self._put_out(partition, now, row, rest)
        except ValueError as error:
            # Some are out and gone already, so nobody goes on behind it.
            raise user_code_error(row, str(self._step), error) from error

    def _put_out(self, partition: _Partition, now: int, row: Row, rest: Iterator[Any] | None) -> bool:
        number, closings, kind = partition.number, partition.closings, self._kind
        held, dirty = self._cache.of(number)
        for at, form, left in closings.take_due(now, rest):
            self._cache.fetch(number, (form,))
            windows: Open = held.get(form) or {}
            before, remembered = _number(windows), windows.get(REMEMBERED)
            over = kind.take_over(windows, at)
            for start, entry in over:
                whose, key = KeyOnly(row, legible(form), at), whole_key(form, left)
                self._final.put(whose, key, kind.window(start, entry), kind.timestamp(start, entry))
            if windows:
                closings.add(min(kind.closes(*each) for each in windows.items()), form, left)
            if over or windows.get(REMEMBERED) != remembered:
                held[form] = dirty[form] = windows or None
                self._grew(partition, _number(windows) - before)
        return closings.earliest > now

    def _opened(self, number: int) -> _Partition:
        partition = self._partitions.get(number)
        if partition is None:
            partition = self._partitions[number] = _Partition(self._operator, number, self._step.grace_ms, self._store)
        return partition

    def _settle(self) -> None:
        self._cache.settle()
        for partition in self._partitions.values():
            partition.closings.settle()


def _number(windows: Open) -> int:
    """Return how many windows there are, without what is remembered of others."""
    return len(windows) - (REMEMBERED in windows)
