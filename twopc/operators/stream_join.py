"""The join of two streams by key and event time, by the number of the partition that the key was read from.

How it goes with time is that of `twopc.operators.event_time`.

- A record meets those of the other side whose times are at most `within` apart, whichever comes first, oldest first.
- It waits until the stream time is past its time, `within` and the grace; then it is gone, and one that met nothing
  goes out alone where the join keeps its side. One that comes later meets who still waits, and does not wait.
- When one is gone was fixed when it came, so a job that was changed ends what waits as it was.
- What goes out alone has the place of the record that moved time, and its own key: what goes wrong with it is not that
  record's error, and it is gone.
- A key of which records wait has an entry in the time queue, at the time at which the first of them goes, or before it.
- A record on which the function raises has changed nothing but the time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from twopc.column import Over
from twopc.operators.event_time import EventTimeOperator, TimedPartition
from twopc.operators.instance import OperatorContext
from twopc.operators.join_side import Held, JoinSide, WaitingRecords
from twopc.operators.keyed import Run
from twopc.operators.result import Result, Work
from twopc.operators.stream_join_step import SIDES, JoinStreams
from twopc.operators.write_back_cache import KeyedStateStore
from twopc.record import Batch, ErrorStage, Headers, RecordError, Row
from twopc.stand_ins import KeyOnly
from twopc.state.key_form import legible
from twopc.state.whole_key import left_out, whole_key
from twopc.termination import TERMINATION


class _Partition(TimedPartition):
    def __init__(self, operator: str, number: int, store: KeyedStateStore, sides: Sequence[JoinSide]) -> None:
        super().__init__(operator, number, store)
        self.sides = [WaitingRecords(side, number) for side in sides]


class _Outputs:
    """The records that come of a batch, as columns."""

    def __init__(self) -> None:
        self.rows: list[Row] = []
        self.keys: list[Any] = []
        self.values: list[Any] = []
        self.timestamps: list[int | None] = []
        self.headers: list[Headers | None] = []
        self.lost: list[RecordError] = []

    def put(self, row: Row, key: Any, values: list[Any], timestamps: Sequence[int], headers: Headers | None) -> None:
        self.rows += [row] * len(values)
        self.keys += [key] * len(values)
        self.values += values
        self.timestamps += timestamps
        self.headers += [headers] * len(values)

    def result(self, taken: int, cause: BaseException | None = None) -> Result:
        batch = Batch(self.rows, self.values, self.keys, self.timestamps, self.headers)
        return Result(taken, batch, cause, self.lost)


class StreamJoin(EventTimeOperator[_Partition]):
    """One join of two streams on one subtask."""

    def __init__(self, step: JoinStreams, context: OperatorContext) -> None:
        self._operator, self._step, self._store = context.operator_id, step, context.store
        self._latest = context.latest
        self.lasts_ms = step.within_ms + step.grace_ms + 1
        self._sides = [
            JoinSide(side, serde, self.lasts_ms, context) for side, serde in zip(SIDES, step.serdes, strict=True)
        ]
        super().__init__(step, [side.cache for side in self._sides], context)
        self._goes_alone = (step.how != "inner", step.how == "outer")
        self._outputs = _Outputs()
        self._which: Sequence[int] = ()

    @property
    def ports(self) -> Sequence[Work]:
        return [self._of_side(which) for which in range(len(SIDES))]

    def together(self, numbers: Sequence[int]) -> Work:
        return lambda batch, over: self._process(batch, over, numbers[len(numbers) - len(batch) :])

    def _of_side(self, which: int) -> Work:
        return lambda batch, over: self._process(batch, over, [which] * len(batch))

    def _process(self, batch: Batch, over: Over, sides: Sequence[int]) -> Result:
        """Let the records meet those of the other side, up to where `over` stops; `sides` says of which each is."""
        self._which = sides
        taken, cause = self._take(batch, over)
        return self._outputs.result(taken, cause)

    def _new_partition(self, number: int) -> _Partition:
        return _Partition(self._operator, number, self._store, self._sides)

    def _begin(self) -> None:
        self._outputs = _Outputs()

    def _passed(self) -> Result:
        return self._outputs.result(0)

    def _run(self, run: Run, batch: Batch, begin: int, rest: Iterator[Any]) -> tuple[int, BaseException | None]:
        number, forms = run
        partition = self._opened(number)
        time, timers = partition.time, partition.timers
        stamps, rows = batch.timestamps, batch.rows
        latest = self._latest()
        index = begin
        # The forms come first: the other way round one value more would be taken.
        for form, value in zip(forms, rest, strict=False):
            stamp = stamps[index]
            now = self._time_at(time, stamp, latest)
            if stamp is None or now is None:
                return index - begin, self._fault(stamp, rows[index], latest)
            self._move(time, now)
            if timers.earliest <= now and not self._let_go(partition, now, rows[index], rest):
                return index - begin, None
            if value is not None:
                try:
                    self._meet(partition, batch, index, (form, stamp, value))
                except TERMINATION:
                    raise
                except BaseException as error:  # noqa: BLE001 - it is an error of the record in hand
                    return index - begin, error
            index += 1
        return index - begin, None

    def _meet(self, partition: _Partition, batch: Batch, index: int, came: tuple[bytes, int, Any]) -> None:
        """Let a record meet who is there, and wait; where something raises, nothing has changed."""
        (form, at, value), which = came, self._which[index]
        own, other = partition.sides[which], partition.sides[1 - which]
        key, until = batch.keys[index], at + self.lasts_ms
        waits = partition.time.now is None or until > partition.time.now
        held, left = (own.side.encoded(value), left_out(key)) if waits else (b"", b"")
        start, met = other.near(form, at, self._step.within_ms)
        if met:
            made, times = [], []
            for each in met:
                made.append(self._joined(value, other.side.value(each), which))
                times.append(max(at, each[0]))
            self._outputs.put(batch.rows[index], key, made, times, batch.headers[index])
            other.met(form, start, met)
        elif not waits and self._goes_alone[which]:
            self._outputs.put(batch.rows[index], key, [self._joined(value, None, which)], [at], batch.headers[index])
        if waits:
            if not own.one_goes_by(form, until) and not other.one_goes_by(form, until):
                partition.timers.add(until, form, left)
            own.add(form, (at, until, bool(met), held))

    def _joined(self, own: Any, other: Any, which: int) -> Any:
        return self._step.function(other, own) if which else self._step.function(own, other)

    def _let_go(self, partition: _Partition, now: int, row: Row, rest: Iterator[Any] | None) -> bool:
        timers = partition.timers
        for due in timers.take_due(now, rest):
            until, form, left = due
            following = None
            for which, waiting in enumerate(partition.sides):
                if form not in waiting.by_key:
                    waiting.side.cache.fetch(partition.number, (form,))
                gone, first = waiting.leave(form, until)
                if gone and self._goes_alone[which]:
                    self._put_alone(gone, due, row, which)
                if first is not None and (following is None or first < following):
                    following = first
            if following is not None:
                timers.add(following, form, left)
        return timers.earliest > now

    def _put_alone(self, gone: list[Held], due: tuple[int, bytes, bytes], row: Row, which: int) -> None:
        """Put out those of the gone that have met none."""
        until, form, left = due
        for each in gone:
            if each[2]:
                continue
            whose = KeyOnly(row, legible(form), until)
            try:
                made = self._joined(self._sides[which].value(each), None, which)
            except TERMINATION:
                raise
            except BaseException as error:  # noqa: BLE001 - it is an error of the record that goes
                doing = f"{self._step}, of a record that met none"
                self._outputs.lost.append(RecordError(whose, ErrorStage.TRANSFORMATION, doing, error))
            else:
                self._outputs.put(whose, whole_key(form, left), [made], [each[0]], None)
