"""The join of two streams, one record after the other: all that wait of a key are looked at."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import count
from typing import Any

from twopc.operators.bound_state import decoded, encoded
from twopc.operators.instance import OperatorContext
from twopc.operators.result import Result
from twopc.operators.stream_join_step import SIDES, JoinStreams
from twopc.record import Batch, ErrorStage, Headers, RecordError, Row
from twopc.stand_ins import KeyOnly
from twopc.state.key_form import legible
from twopc.termination import TERMINATION
from twopc.verify.plain.sided import PlainSided
from twopc.verify.plain.timed import BEFORE_ALL


@dataclass(slots=True, eq=False)
class _Waiting:
    at: int
    value: bytes
    key: Any
    has_met: bool


Due = tuple[int, bytes, int, int, _Waiting]
"""When a record goes, the form of its key, its side, and which it is of all: in this order they go."""


class PlainStreamJoin(PlainSided):
    """One join of two streams."""

    def __init__(self, step: JoinStreams, context: OperatorContext) -> None:
        super().__init__(step, context)
        self._step = step
        self._goes_alone = (step.how != "inner", step.how == "outer")
        self._waiting: defaultdict[tuple[int, int, bytes], list[_Waiting]] = defaultdict(list)
        self._due: defaultdict[int, list[Due]] = defaultdict(list)
        self._turn = count()
        self._begin()

    def _begin(self) -> None:
        self._made: list[tuple[Row, Any, Any, int, Headers | None]] = []
        self._lost: list[RecordError] = []

    def _result(self, batch: Batch, taken: int, cause: BaseException | None) -> Result:
        rows, keys, values, times, headers = map(list, zip(*self._made, strict=True)) if self._made else [[]] * 5
        return Result(taken, Batch(rows, values, keys, times, headers), cause, self._lost)

    def _take(self, batch: Batch, index: int, form: bytes, value: Any) -> None:
        row, key, headers, side = batch.rows[index], batch.keys[index], batch.headers[index], self._sides[index]
        number = row.partition() or 0
        at, now = self._time_at(number, row, batch.timestamps[index])
        self._move(number, now, row)
        if value is None:
            return
        until = at + self._step.within_ms + self._step.grace_ms + 1
        held = encoded(SIDES[side], self._step.serdes[side], value) if until > now else None
        if until > now and held is None:
            raise ValueError("a value that waits is nothing to its serde")
        near = [each for each in self._waiting[number, 1 - side, form] if abs(each.at - at) <= self._step.within_ms]
        near.sort(key=lambda each: each.at)
        made = [(row, key, self._joined(side, value, each.value), max(at, each.at), headers) for each in near]
        if held is None and not near and self._goes_alone[side]:
            made.append((row, key, self._joined(side, value, None), at, headers))
        self._made += made
        for each in near:
            each.has_met = True
        if held is not None:
            waiting = _Waiting(at, held, key, bool(near))
            self._waiting[number, side, form].append(waiting)
            heappush(self._due[number], (until, form, side, next(self._turn), waiting))

    def _joined(self, side: int, value: Any, other: bytes | None) -> Any:
        found = decoded(SIDES[1 - side], self._step.serdes[1 - side], other)
        return self._step.function(found, value) if side else self._step.function(value, found)

    def _latest(self, number: int) -> int:
        return max((each[0] for each in self._due[number]), default=BEFORE_ALL)

    def _close(self, number: int, now: int, row: Row) -> None:
        due = self._due[number]
        while due and due[0][0] <= now:
            until, form, side, _, gone = heappop(due)
            self._waiting[number, side, form].remove(gone)
            if self._goes_alone[side] and not gone.has_met:
                self._go_alone(side, gone, KeyOnly(row, legible(form), until))

    def _go_alone(self, side: int, gone: _Waiting, whose: KeyOnly) -> None:
        try:
            value = decoded(SIDES[side], self._step.serdes[side], gone.value)
            made = self._joined(side, value, None)
        except TERMINATION:
            raise
        except BaseException as error:  # noqa: BLE001 - it is an error of the record that goes
            doing = f"{self._step}, of a record that met none"
            self._lost.append(RecordError(whose, ErrorStage.TRANSFORMATION, doing, error))
        else:
            self._made.append((whose, gone.key, made, gone.at, None))
