"""A table, and the join of a stream with one: a dict that is looked into."""

from __future__ import annotations

from twopc.column import Over
from twopc.operators import JoinTable, KeepTable
from twopc.operators.bound_state import decoded, encoded
from twopc.operators.instance import OnePortInstance
from twopc.operators.keyed import KeyForms
from twopc.operators.result import Result
from twopc.record import Batch
from twopc.termination import TERMINATION


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
