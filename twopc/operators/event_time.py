"""What operators have alike that take records one by one in event time, and have something due by partition number.

- Under one partition number records are seen in order. Each moves the stream time to its timestamp if that is greater,
  but behind topics of the job's own: there marks alone do. What is due by then goes before it counts, in time order.
- That may be cut, as a loop over records: the record waits then, and the rest goes before it.
- So outputs and states depend on the records of a partition number alone, not on where batches end.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any, Generic, TypeVar

from twopc.clock import LATEST_MS
from twopc.column import Over
from twopc.operators.instance import OperatorContext, TimedInstance
from twopc.operators.keyed import KeyForms, Run, partition_runs
from twopc.operators.result import Result
from twopc.operators.step import Step
from twopc.operators.stored_numbers import StreamTime
from twopc.operators.time_bound import too_far_ahead, without_time
from twopc.operators.time_queue import TimeQueue
from twopc.operators.write_back_cache import KeyedStateStore, WriteBackCache
from twopc.record import Batch, RecordFault, Row
from twopc.stand_ins import PassedTime
from twopc.state.layout import TIMERS, StateName

NEVER = -(2**63)
"""Before any time."""


class TimedPartition:
    """The part of an operator under one partition number, beside its states."""

    def __init__(self, operator: str, number: int, store: KeyedStateStore) -> None:
        self.number = number
        self.time = StreamTime(operator, number, store)
        self.timers = TimeQueue(StateName(operator, TIMERS), number, store)

    def write_back(self) -> None:
        """Bring the store up to it."""
        self.time.write_back()
        self.timers.write_back()


P = TypeVar("P", bound=TimedPartition)


class EventTimeOperator(TimedInstance, Generic[P]):
    """One on one subtask. A record is due at most `lasts_ms` behind the stream time that it finds, as far as known."""

    lasts_ms = 0

    def __init__(self, step: Step, caches: Sequence[WriteBackCache], context: OperatorContext) -> None:
        self._operation, self._key_forms, self._caches = step, KeyForms(step), caches
        self._by_marks = context.by_marks
        self._partitions: dict[int, P] = {}
        self._failed = False

    @abstractmethod
    def _new_partition(self, number: int) -> P: ...

    @abstractmethod
    def _begin(self) -> None:
        """Forget what came of the last batch, or of the last passing of time."""

    @abstractmethod
    def _run(self, run: Run, batch: Batch, begin: int, rest: Iterator[Any]) -> tuple[int, BaseException | None]:
        """Take the records of a run, which begins there in the batch, and as many values of the rest.

        Return how many were taken, and what was raised on the one behind those.
        """

    @abstractmethod
    def _let_go(self, partition: P, now: int, row: Row, rest: Iterator[Any] | None) -> bool:
        """Put out what is due at this time: all, or as much as goes before a cut of the rest. Return whether all.

        The record that moved time there, of which the row is, is not taken before.
        """

    @abstractmethod
    def _passed(self) -> Result:
        """Return what came of a passing of time."""

    def pass_time(self, number: int, to: int) -> Result:
        self._begin()
        self._advance(self._opened(number), to)
        self._settle()
        return self._passed()

    def drain(self, number: int) -> Result:
        self._begin()
        partition = self._opened(number)
        # What goes may leave something behind that is due later; what was stored before may wait for longer.
        while (latest := partition.timers.latest()) is not None:
            now = partition.time.now
            self._advance(partition, latest if now is None else max(latest, now + self.lasts_ms))
        self._settle()
        return self._passed()

    def stream_time(self, number: int) -> int | None:
        return self._opened(number).time.now

    def write_back(self) -> None:
        assert not self._failed, "a batch failed half-way, so the states of this attempt are of no use"
        for cache in self._caches:
            cache.write_back()
        for partition in self._partitions.values():
            partition.write_back()

    def _take(self, batch: Batch, over: Over) -> tuple[int, BaseException | None]:
        """Take the records up to where `over` stops; return how many, and what was raised on the one behind those."""
        keys, bad_key = self._key_forms.of(batch)
        self._begin()
        taken = 0
        cause: BaseException | None = None
        # With one more than there are: while that is to come, nobody has cut the loop.
        rest = over([*batch.values, None])
        self._failed = True
        for number, run in partition_runs(batch.rows[: len(keys)], keys):
            for cache in self._caches:
                cache.fetch(number, run)
            counted, cause = self._run((number, run), batch, taken, rest)
            taken += counted
            if counted < len(run):
                break
        self._failed = False
        self._settle()
        return taken, bad_key if taken == len(keys) else cause

    def _time_at(self, time: StreamTime, stamp: int | None, latest: int) -> int | None:
        """Return the stream time at which a record of this timestamp is seen; None where that is wrong (`_fault`)."""
        if stamp is None or stamp > LATEST_MS:
            return None
        now = NEVER if time.now is None else time.now
        if stamp <= now:
            return now
        if stamp > latest:
            return None
        return now if self._by_marks else stamp

    def _fault(self, stamp: int | None, row: Row, latest: int) -> RecordFault:
        """Return what is wrong with the timestamp of a record."""
        if stamp is None or stamp > LATEST_MS:
            return without_time(row, stamp, self._operation)
        return too_far_ahead(row, stamp, latest, self._operation)

    def _move(self, time: StreamTime, now: int) -> None:
        """A record is taken at this time."""
        if not self._by_marks:
            time.now = now

    def _advance(self, partition: P, to: int) -> None:
        time = partition.time
        time.now = to if time.now is None else max(time.now, to)
        self._failed = True
        self._let_go(partition, time.now, PassedTime(partition.number), None)
        self._failed = False

    def _opened(self, number: int) -> P:
        partition = self._partitions.get(number)
        if partition is None:
            partition = self._partitions[number] = self._new_partition(number)
        return partition

    def _settle(self) -> None:
        for cache in self._caches:
            cache.settle()
        for partition in self._partitions.values():
            partition.timers.settle()
