"""What windows and a join of streams have alike: each record moves time, what is over by then goes, then it counts."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

from twopc.clock import LATEST_MS
from twopc.column import Over
from twopc.operators.instance import OperatorContext, TimedInstance
from twopc.operators.keyed import KeyForms
from twopc.operators.result import Result
from twopc.operators.step import Step
from twopc.operators.time_bound import too_far_ahead, without_time
from twopc.record import Batch, Row
from twopc.stand_ins import PassedTime
from twopc.termination import TERMINATION

BEFORE_ALL = -(2**63)
"""Before any time."""


class PlainTimed(TimedInstance):
    """One that has a stream time by partition number, in Unix milliseconds."""

    def __init__(self, step: Step, context: OperatorContext) -> None:
        self._operation, self._context, self._forms = step, context, KeyForms(step)
        self._times: dict[int, int] = {}

    @abstractmethod
    def _begin(self) -> None:
        """Forget what came of the last batch, or of the last passing of time."""

    @abstractmethod
    def _take(self, batch: Batch, index: int, form: bytes, value: Any) -> None:
        """Take a record whose key has this form; where something raises, nothing has changed."""

    @abstractmethod
    def _close(self, number: int, now: int, row: Row) -> None:
        """Let go what is over at this time; the row is that of the record that moved it there."""

    @abstractmethod
    def _latest(self, number: int) -> int:
        """Return the time at which all that is there is over, BEFORE_ALL where nothing is."""

    @abstractmethod
    def _result(self, batch: Batch, taken: int, cause: BaseException | None) -> Result:
        """Return what came of so many records of a batch."""

    def pass_time(self, number: int, to: int) -> Result:
        self._begin()
        self._times[number] = max(to, self._times.get(number, to))
        self._close(number, self._times[number], PassedTime(number))
        return self._result(Batch([], []), 0, None)

    def drain(self, number: int) -> Result:
        return self.pass_time(number, max(self._latest(number), self._times.get(number, BEFORE_ALL)))

    def stream_time(self, number: int) -> int | None:
        return self._times.get(number)

    def _process(self, batch: Batch, over: Over) -> Result:
        self._begin()
        forms, bad_key = self._forms.of(batch)
        taken = 0
        for value in over(batch.values[: len(forms)]):
            try:
                self._take(batch, taken, forms[taken], value)
            except TERMINATION:
                raise
            except BaseException as error:  # noqa: BLE001 - it is an error of the record in hand
                return self._result(batch, taken, error)
            taken += 1
        return self._result(batch, taken, bad_key if taken == len(forms) else None)

    def _time_at(self, number: int, row: Row, stamp: int | None) -> tuple[int, int]:
        """Return the time of a record, and the stream time at which it is seen."""
        now = self._times.get(number, BEFORE_ALL)
        if stamp is None or stamp > LATEST_MS:
            raise without_time(row, stamp, self._operation)
        if stamp > max(now, latest := self._context.latest()):
            raise too_far_ahead(row, stamp, latest, self._operation)
        return stamp, now if self._context.by_marks else max(now, stamp)

    def _move(self, number: int, now: int, row: Row) -> None:
        """A record is about to count; behind a topic of the job's own marks alone move time."""
        if not self._context.by_marks:
            self._times[number] = now
            self._close(number, now, row)
