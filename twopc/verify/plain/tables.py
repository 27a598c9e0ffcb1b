"""A table, and the joins of a stream and of another table with one: dicts that are looked into."""

from __future__ import annotations

from typing import Any

from twopc.column import Over
from twopc.operators import JoinTable, KeepTable
from twopc.operators.bound_state import decoded, encoded
from twopc.operators.instance import OnePortInstance, OperatorContext
from twopc.operators.keyed import KeyForms
from twopc.operators.result import Result
from twopc.operators.stream_join_step import SIDES
from twopc.operators.table_join import JoinTables
from twopc.record import Batch, Row
from twopc.termination import TERMINATION
from twopc.verify.plain.sided import PlainSided
from twopc.verify.plain.timed import BEFORE_ALL


class PlainTable(OnePortInstance):
    """The latest value of each key, encoded, by partition number and key."""

    def __init__(self, step: KeepTable) -> None:
        self.step, self._forms = step, KeyForms(step)
        self.latest: dict[tuple[int | None, bytes], bytes | None] = {}

    def process(self, batch: Batch, over: Over) -> Result:
        forms, cause = self._forms.of(batch)
        taken = 0
        for value in over(batch.values[: len(forms)]):
            try:
                new = encoded(self.step.name, self.step.state, value)
            except TERMINATION:
                raise
            except BaseException as error:  # noqa: BLE001 - it is an error of the record in hand
                return Result(taken, batch.first(0), error)
            self.latest[batch.rows[taken].partition(), forms[taken]] = new
            taken += 1
        return Result(taken, batch.first(0), cause if taken == len(forms) else None)


class PlainJoin(OnePortInstance):
    """What the function makes of each value and of what the table has for its key."""

    def __init__(self, step: JoinTable, table: PlainTable) -> None:
        self._step, self._table, self._forms = step, table, KeyForms(step)

    def process(self, batch: Batch, over: Over) -> Result:
        step, table = self._step, self._table
        forms, cause = self._forms.of(batch)
        taken = 0
        made, of = [], []
        for value in over(batch.values[: len(forms)]):
            try:
                found = table.latest.get((batch.rows[taken].partition(), forms[taken]))
                other = decoded(table.step.name, table.step.state, found)
                if other is not None or step.how == "left":
                    made.append(step.function(value, other))
                    of.append(taken)
            except TERMINATION:
                raise
            except BaseException as error:  # noqa: BLE001 - it is an error of the record in hand
                return Result(taken, batch.take(of).with_values(made), error)
            taken += 1
        return Result(taken, batch.take(of).with_values(made), cause if taken == len(forms) else None)


class PlainTableOfTables(PlainSided):
    """What the function makes of the values of two tables, anew with each change of either."""

    def __init__(self, step: JoinTables, context: OperatorContext) -> None:
        super().__init__(step, context)
        states = type(step.processor).declared_states()
        self._serdes = [states[side].serde for side in SIDES]
        self._function, self._how = step.processor.function, step.processor.how
        self._latest_of: dict[tuple[int, bytes], tuple[bytes | None, bytes | None]] = {}
        self._begin()

    def _begin(self) -> None:
        self._of: list[int] = []
        self._made: list[Any] = []

    def _result(self, batch: Batch, taken: int, cause: BaseException | None) -> Result:
        return Result(taken, batch.take(self._of).with_values(self._made), cause)

    def _close(self, number: int, now: int, row: Row) -> None:
        """Nothing waits for time."""

    def _latest(self, number: int) -> int:
        return BEFORE_ALL

    def _take(self, batch: Batch, index: int, form: bytes, value: Any) -> None:
        row, stamp, side = batch.rows[index], batch.timestamps[index], self._sides[index]
        number = row.partition() or 0
        if stamp is not None:
            self._move(number, self._time_at(number, row, stamp)[1], row)
        before = self._latest_of.get((number, form), (None, None))
        new = encoded(SIDES[side], self._serdes[side], value)
        both = (before[0], new) if side else (new, before[1])
        if self._is_there(both):
            names = zip(SIDES, self._serdes, both, strict=True)
            self._made.append(self._function(*(decoded(name, serde, held) for name, serde, held in names)))
            self._of.append(index)
        elif self._is_there(before):
            self._made.append(None)
            self._of.append(index)
        self._latest_of[number, form] = both

    def _is_there(self, both: tuple[bytes | None, bytes | None]) -> bool:
        left, right = (held is not None for held in both)
        return {"inner": left and right, "left": left, "outer": left or right}[self._how]
