"""process: a processor with state by key and timers, by the number of the partition that the key was read from.

- Under one partition number records are seen in order. Each moves the stream time to its timestamp if that is greater;
  timers that are due then fire, in time order, before the record is processed, and those that it set for a time that
  has come behind it.
- What a timer makes has the row of the record that moved time.
- Outputs and states depend on the records of a partition number alone, not on where batches end: also what has outlived
  its time is deleted record by record, few at a time, so that a jump in time holds up nothing.
- A batch reads each of its keys at most once and writes each at most once, of each state; see `stateful_map`.
- A record on which the processor raises may have changed states that are held, so it ends the attempt, whatever the
  policy for records that go wrong; nothing is written any more.
"""

from __future__ import annotations

import copy
from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from twopc.column import Over, user_code_error
from twopc.errors import ConfigurationError
from twopc.operators.bound_states import BoundState, Call, bound
from twopc.operators.keyed import key_forms, partition_runs
from twopc.operators.records import as_batch, checked
from twopc.operators.steps import Process
from twopc.operators.stream_time import StreamTime
from twopc.operators.time_queue import TIMES, TimeQueue
from twopc.operators.values import Result
from twopc.operators.write_back_cache import KeyedStateStore, WriteBackCache
from twopc.processor import Context, Processor
from twopc.record import Batch, Record, Row
from twopc.state.key_form import key_of
from twopc.state.layout import EXPIRIES, TIMERS, StateName
from twopc.termination import TERMINATION

EXPIRED_PER_RECORD = 16
"""How many values are deleted at most behind a record: more than a record writes, so none stays for ever."""

_TEXT, _OTHER = b"t", b"o"
"""Before the key of a timer: text comes back as text."""


class _Partition:
    """What the operator keeps of one partition number beside the declared states."""

    def __init__(self, operator: str, number: int, step: Process, store: KeyedStateStore) -> None:
        states = step.states
        self.time = StreamTime(operator, number, store)
        self.timers = TimeQueue(StateName(operator, TIMERS), number, store) if TIMERS in states else None
        self.expiries = TimeQueue(StateName(operator, EXPIRIES), number, store) if EXPIRIES in states else None

    @property
    def queues(self) -> list[TimeQueue]:
        return [queue for queue in (self.timers, self.expiries) if queue is not None]


class ProcessOperator:
    """One `process` on one subtask, with a copy of the processor of its own."""

    def __init__(self, operator: str, step: Process, store: KeyedStateStore, sharers: int) -> None:
        self._operator, self._step, self._store = operator, step, store
        self._call = Call()
        self._processor = _copied(step)
        self._states: dict[str, BoundState] = {}
        for name, declared in type(step.processor).declared_states().items():
            cache = WriteBackCache(StateName(operator, name), store, sharers)
            self._states[name] = bound(declared, cache, self._call)
            vars(self._processor)[name] = self._states[name]
        self._context = Context()
        self._timers = _KeyTimers(self._step, self._context)
        self._context._timers = self._timers
        self._sides = _Sides()
        self._context._sides = self._sides
        self._partitions: dict[int, _Partition] = {}
        self._failed = False

    def process(self, batch: Batch, over: Over) -> Result:
        """Return the records that the processor makes of the batch's, up to where `over` stops."""
        keys, bad_key = key_forms(self._step, batch)
        batch = batch.first(len(keys))
        for number, run in partition_runs(batch.rows, keys):
            for state in self._states.values():
                state.cache.fetch(number, run)
        records = batch.records()
        rows: list[Row] = []
        outputs: list[Record] = []
        taken = 0
        self._sides.clear()
        rest = over(records)
        self._failed = True
        try:
            for key, row, record in zip(keys, batch.rows, rest, strict=False):
                self._sides.row = row
                self._one(key, row.partition() or 0, record, outputs)
                rows += [row] * (len(outputs) - len(rows))
                taken += 1
        except TERMINATION:
            raise
        except BaseException as error:
            # What it has set before it raised can't be undone, so nobody goes on behind it.
            raise user_code_error(batch.rows[taken], str(self._step), error) from error
        self._failed = False
        self._settle()
        return Result(taken, as_batch(rows, outputs), bad_key if taken == len(keys) else None)

    def side_output(self, name: str) -> Batch:
        """Return what the last batch has put out there."""
        return as_batch(*self._sides.outputs[name])

    def write_back(self) -> None:
        """Bring the store up to every batch so far."""
        assert not self._failed, "a batch failed half-way, so the states of this attempt are of no use"
        for state in self._states.values():
            state.cache.write_back()
        for partition in self._partitions.values():
            partition.time.write_back()
            for queue in partition.queues:
                queue.write_back()

    def _one(self, key: bytes, number: int, record: Record, outputs: list[Record]) -> None:
        """Process one record, and what is due by its time."""
        partition = self._partitions.get(number) or self._opened(number)
        time, timers, expiries, call = partition.time, partition.timers, partition.expiries, self._call
        stamp = record.timestamp
        if stamp is not None and (time.now is None or stamp > time.now):
            time.now = stamp
        now = time.now
        call.partition, call.now, call.expiries = number, now, expiries
        context = self._context
        context.topic, context.partition, context.offset = record.topic, record.partition, record.offset
        context.stream_time = now
        if timers is not None and now is not None and timers.earliest <= now:
            self._fire(timers, now, outputs)
        context.key, context.timestamp, context.headers = record.key, stamp, record.headers
        call.key = key
        self._timers.enter(timers, key, None)
        _collect(self._processor.process(record, context), outputs)
        call.end()
        if now is None:
            return
        if timers is not None and timers.earliest <= now:
            self._fire(timers, now, outputs)
        if expiries is not None and expiries.earliest <= now:
            self._expire(expiries, number, now)

    def _fire(self, timers: TimeQueue, now: int, outputs: list[Record]) -> None:
        context, call = self._context, self._call
        while (due := timers.pop(now)) is not None:
            at, marked = due
            key = marked[1:]
            context.key = key.decode() if marked[:1] == _TEXT else key_of(key)
            context.timestamp, context.headers = at, None
            call.key = key
            self._timers.enter(timers, key, at)
            _collect(self._processor.on_timer(at, context), outputs)
            call.end()

    def _expire(self, expiries: TimeQueue, number: int, now: int) -> None:
        for _ in range(EXPIRED_PER_RECORD):
            due = expiries.pop(now)
            if due is None:
                return
            name, _, key = due[1].partition(b"\0")
            # A state that is declared no longer has left entries behind.
            if (state := self._states.get(name.decode())) is not None:
                state.expire(number, key, expiries, now)

    def _opened(self, number: int) -> _Partition:
        partition = self._partitions[number] = _Partition(self._operator, number, self._step, self._store)
        return partition

    def _settle(self) -> None:
        for state in self._states.values():
            state.cache.settle()
        for partition in self._partitions.values():
            for queue in partition.queues:
                queue.settle()


class _Sides:
    """What a batch puts out beside what its functions return, each with the row that it was made of."""

    def __init__(self) -> None:
        self.row: Row | None = None
        self.outputs: defaultdict[str, tuple[list[Row], list[Record]]] = defaultdict(lambda: ([], []))

    def put(self, name: str, record: Record) -> None:
        rows, records = self.outputs[name]
        assert self.row is not None
        records.append(checked(record))
        rows.append(self.row)

    def clear(self) -> None:
        self.outputs.clear()


class _KeyTimers:
    """The timers of the key in hand."""

    def __init__(self, step: Process, context: Context) -> None:
        self._step = step
        self._context = context
        self._queue: TimeQueue | None = None
        self._key = b""
        self._firing: int | None = None

    def enter(self, queue: TimeQueue | None, key: bytes, firing: int | None) -> None:
        """A function is called for this key; `firing` is the time of the timer that it is called for."""
        self._queue, self._key, self._firing = queue, key, firing

    def set(self, at: int) -> None:
        if self._firing is not None and at <= self._firing:
            raise ValueError(f"on_timer of time {self._firing} sets a timer for {at}, and would be called for ever")
        self._known().add(_checked_time(at), self._marked())

    def delete(self, at: int) -> None:
        self._known().remove(_checked_time(at), self._marked())

    def _known(self) -> TimeQueue:
        if self._queue is None:
            raise TypeError(f"{self._step} has timers, and its processor has no function on_timer(self, at, context)")
        return self._queue

    def _marked(self) -> bytes:
        return (_TEXT if isinstance(self._context.key, str) else _OTHER) + self._key


def _checked_time(at: Any) -> int:
    if type(at) is not int or at not in TIMES:
        raise TypeError(f"the time of a timer must be an integer, Unix milliseconds, not {at!r}")
    return at


def _copied(step: Process) -> Processor:
    try:
        return copy.deepcopy(step.processor)
    except Exception as error:
        raise ConfigurationError(
            f"{step}: each subtask has a copy of the processor, and this one can't be copied: {error}. Make what can't "
            "be when process first needs it"
        ) from error


def _collect(produced: Any, outputs: list[Record]) -> None:
    """Add what a function produced; a generator runs here, so that its errors have a record."""
    if produced is None:
        return
    if isinstance(produced, Record):
        outputs.append(produced)
        return
    if isinstance(produced, str | bytes | dict) or not isinstance(produced, Iterable):
        raise TypeError(f"the function must return or yield Records, or None, not {type(produced).__name__}")
    outputs.extend(map(checked, produced))
