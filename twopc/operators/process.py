"""process: a processor with state by key and timers, by the number of the partition that the key was read from.

- Under one partition number records are seen in order. Each moves the stream time to its timestamp if that is greater,
  and goes wrong where that is too far ahead of the clock. Timers that are due then fire, in time order, before the
  record is processed, and those that it set for a time that has come behind it.
- What a timer makes has the row of the record that moved time.
- Outputs and states depend on the records of a partition number alone, not on where batches end: also what has outlived
  its time is deleted record by record, few at a time, so that a jump in time holds up nothing.
- A batch reads each of its keys at most once and writes each at most once, of each state; see `stateful_map`.
- A call that raises changes nothing: its states, timers, outputs and side outputs are taken back. The time that its
  record has moved stays so, and what fired before it has fired. A timer on which `on_timer` raises is gone.
"""

from __future__ import annotations

import copy
import logging
from collections.abc import Callable, Sequence
from typing import Any

from twopc.column import Over, failure_at
from twopc.errors import ConfigurationError
from twopc.operators.bound_state import BoundState, Call, parted_due
from twopc.operators.bound_states import bound
from twopc.operators.element_numbers import ElementNumbers
from twopc.operators.instance import OperatorContext, TimedInstance
from twopc.operators.key_timers import KeyTimers
from twopc.operators.keyed import KeyForms, partition_runs
from twopc.operators.process_step import Process
from twopc.operators.records import as_batch, collected_records, kept
from twopc.operators.result import Result, Work
from twopc.operators.side_outputs import SideOutputs
from twopc.operators.stored_numbers import StreamTime
from twopc.operators.time_bound import too_far_ahead
from twopc.operators.time_queue import TimeQueue
from twopc.operators.write_back_cache import KeyedStateStore
from twopc.processor import Context, Processor
from twopc.record import Batch, ErrorStage, Record, RecordError, Row
from twopc.stand_ins import KeyOnly, PassedTime
from twopc.state.key_form import legible
from twopc.state.layout import ELEMENTS, EXPIRIES, TIMERS, StateName
from twopc.state.whole_key import whole_key
from twopc.termination import TERMINATION

log = logging.getLogger(__name__)

EXPIRED_PER_RECORD = 16
"""How many values are deleted at most behind a record, beside as many as it has written: so none stays for ever."""


class _Partition:
    """The operator's own part of one partition number, beside the declared states."""

    def __init__(self, operator: str, number: int, step: Process, store: KeyedStateStore) -> None:
        states = step.states
        self.time = StreamTime(operator, number, store)
        self.timers = TimeQueue(StateName(operator, TIMERS), number, store) if TIMERS in states else None
        self.expiries = TimeQueue(StateName(operator, EXPIRIES), number, store) if EXPIRIES in states else None
        self.numbers = ElementNumbers(operator, number, store) if ELEMENTS in states else None

    @property
    def queues(self) -> list[TimeQueue]:
        return [queue for queue in (self.timers, self.expiries) if queue is not None]

    def write_back(self) -> None:
        """Bring the store up to it."""
        for each in (self.time, self.timers, self.expiries, self.numbers):
            if each is not None:
                each.write_back()


class ProcessOperator(TimedInstance):
    """One `process` on one subtask, with a copy of the processor of its own."""

    def __init__(self, step: Process, context: OperatorContext) -> None:
        self._operator, self._step, self._store = context.operator_id, step, context.store
        self._latest_now, self._latest = context.latest, 0
        self._by_marks = context.by_marks
        self._checks_keys = step.keeps_key and step.checks_keys
        self._key_forms = KeyForms(step)
        self._call = Call()
        self.processor = _copied(step)
        self._states: dict[str, BoundState] = {}
        for name, declared in type(step.processor).declared_states().items():
            self._states[name] = bound(declared, context.cache(name), self._call)
            vars(self.processor)[name] = self._states[name]
        self._context = Context()
        self._timers = KeyTimers(self._step, self._context)
        self._context._timers = self._timers
        self._side_outputs = SideOutputs(type(step.processor).outputs)
        self._context._side_outputs = self._side_outputs
        self._partitions: dict[int, _Partition] = {}
        self._lost_timers: list[RecordError] = []
        self._failed = False

    def open(self) -> None:
        """Let the processor prepare itself; raise UserCodeError where it can't."""
        try:
            self.processor.open()
        except TERMINATION:
            raise
        except Exception as error:
            raise failure_at("before the first record", f"open() of {self._step}", error) from error

    def close(self) -> None:
        """Let the processor let go of what it has prepared; what it raises is logged: the attempt is over."""
        try:
            self.processor.close()
        except TERMINATION:
            raise
        except Exception as error:  # noqa: BLE001 - the attempt has its own reason
            log.warning("closing %s: %r", self._step, error)

    @property
    def ports(self) -> Sequence[Work]:
        return (self.process,)

    def process(self, batch: Batch, over: Over) -> Result:
        """Return the records that the processor makes of the batch's, up to where `over` stops."""
        keys, bad_key = self._key_forms.of(batch)
        batch = batch.first(len(keys))
        for number, run in partition_runs(batch.rows, keys):
            for state in self._states.values():
                state.prefetch(number, run)
        records = batch.records()
        self._latest = self._latest_now()
        rows: list[Row] = []
        outputs: list[Record] = []
        taken = 0
        cause: BaseException | None = None
        self._side_outputs.clear()
        self._lost_timers = []
        rest = over(records)
        self._failed = True
        for key, row, record in zip(keys, batch.rows, rest, strict=False):
            cause = self._one(key, row, record, rows, outputs)
            if cause is not None:
                break
            taken += 1
        self._failed = False
        self._settle()
        if taken == len(keys):
            cause = bad_key
        return Result(taken, as_batch(rows, outputs), cause, self._lost_timers)

    def pass_time(self, number: int, to: int) -> Result:
        partition, row = self._opened(number), PassedTime(number)
        time = partition.time
        time.now = to if time.now is None else max(time.now, to)
        self._enter(number, partition, time.now)
        context = self._context
        context.topic, context.partition, context.offset = row.topic(), number, row.offset()
        rows: list[Row] = []
        outputs: list[Record] = []
        self._side_outputs.clear()
        self._lost_timers = []
        self._failed = True
        if partition.timers is not None:
            self._fire(partition.timers, time.now, row, rows, outputs)
        if partition.expiries is not None:
            self._expire(partition.expiries, number, time.now)
        self._failed = False
        self._settle()
        return Result(0, as_batch(rows, outputs), None, self._lost_timers)

    def drain(self, number: int) -> Result:
        timers = self._opened(number).timers
        latest = None if timers is None else timers.latest()
        if latest is None:
            self._side_outputs.clear()
            return Result(0, as_batch([], []))
        return self.pass_time(number, latest)

    def stream_time(self, number: int) -> int | None:
        return self._opened(number).time.now

    def side_output(self, name: str) -> Batch:
        return as_batch(*self._side_outputs.of(name))

    def write_back(self) -> None:
        assert not self._failed, "a batch failed half-way, so the states of this attempt are of no use"
        for state in self._states.values():
            state.cache.write_back()
        for partition in self._partitions.values():
            partition.write_back()

    def _one(
        self, key: bytes, row: Row, record: Record, rows: list[Row], outputs: list[Record]
    ) -> BaseException | None:
        """Process one record, and what is due by its time; return why the record itself has failed."""
        number = row.partition() or 0
        partition = self._opened(number)
        time, timers, expiries, call = partition.time, partition.timers, partition.expiries, self._call
        stamp = record.timestamp
        if stamp is not None and (time.now is None or stamp > time.now):
            if stamp > self._latest:
                return too_far_ahead(row, stamp, self._latest, self._step)
            if not self._by_marks:
                time.now = stamp
        now = time.now
        self._enter(number, partition, now)
        # Behind a key_by stream time may be far behind the record: what it writes lives on from its own time.
        seen = now if stamp is None or (now is not None and stamp <= now) else stamp
        context = self._context
        context.topic, context.partition, context.offset = record.topic, record.partition, record.offset
        if timers is not None and now is not None and timers.earliest <= now:
            self._fire(timers, now, row, rows, outputs)
        context.key, context.timestamp, context.headers = record.key, stamp, record.headers
        call.key, call.now = key, seen
        self._timers.enter(timers, key, None)
        self._side_outputs.row = row
        cause = self._called(self.processor.process, record, outputs)
        rows += [row] * (len(outputs) - len(rows))
        # Nothing follows a record that has failed: one that is read again after that has left the same behind.
        if cause is not None or now is None:
            return cause
        if timers is not None and timers.earliest <= now:
            self._fire(timers, now, row, rows, outputs)
        if expiries is not None and expiries.earliest <= now:
            self._expire(expiries, number, now)
        return None

    def _enter(self, number: int, partition: _Partition, now: int | None) -> None:
        """Functions are called under this partition number, at this time."""
        call = self._call
        call.partition, call.now, call.expiries = number, now, partition.expiries
        call.numbers, call.expiries_added = partition.numbers, 0
        self._context.stream_time = now

    def _fire(self, timers: TimeQueue, now: int, row: Row, rows: list[Row], outputs: list[Record]) -> None:
        """Fire what is due. What it makes has the place of the row and its own key: no error of it is the row's."""
        context, call = self._context, self._call
        while (due := timers.pop(now)) is not None:
            at, key, left = due
            context.key = whole_key(key, left)
            context.timestamp, context.headers = at, None
            # A timer sees the states as of its own time, however late it fires.
            call.key, call.now = key, at
            self._timers.enter(timers, key, at)
            self._side_outputs.row = due_row = KeyOnly(row, legible(key), at)
            if (cause := self._called(self.processor.on_timer, at, outputs)) is not None:
                doing = f"on_timer of {self._step}"
                self._lost_timers.append(RecordError(due_row, ErrorStage.TRANSFORMATION, doing, cause))
            rows += [due_row] * (len(outputs) - len(rows))
        call.now = now

    def _called(
        self, function: Callable[[Any, Context], Any], argument: Any, outputs: list[Record]
    ) -> BaseException | None:
        """Call a function of the processor; return what it raised, and then it has changed nothing."""
        call, made = self._call, len(outputs)
        try:
            collected_records(function(argument, self._context), outputs)
            if self._checks_keys:
                for produced in (*outputs[made:], *self._side_outputs.of_call):
                    kept(self._context.key, produced)
        except TERMINATION:
            raise
        except BaseException as error:
            if call.broken is not None:
                raise call.broken from error
            call.drop()
            self._timers.drop()
            self._side_outputs.drop()
            del outputs[made:]
            return error
        call.keep()
        self._timers.keep()
        self._side_outputs.keep()
        return None

    def _expire(self, expiries: TimeQueue, number: int, now: int) -> None:
        for _ in range(EXPIRED_PER_RECORD + self._call.expiries_added):
            due = expiries.pop(now)
            if due is None:
                return
            name, address = parted_due(due[1])
            # A state that is declared no longer has left entries behind.
            if (state := self._states.get(name)) is not None:
                state.expire(number, address, expiries, now)

    def _opened(self, number: int) -> _Partition:
        partition = self._partitions.get(number)
        if partition is None:
            partition = self._partitions[number] = _Partition(self._operator, number, self._step, self._store)
        return partition

    def _settle(self) -> None:
        for state in self._states.values():
            state.settle()
        for partition in self._partitions.values():
            for queue in partition.queues:
                queue.settle()


def _copied(step: Process) -> Processor:
    try:
        return copy.deepcopy(step.processor)
    except Exception as error:
        raise ConfigurationError(
            f"{step}: each subtask has a copy of the processor, and this one can't be copied: {error}. Make what can't "
            "be when process first needs it"
        ) from error
