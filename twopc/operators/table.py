"""table, and the join of a stream with one: the latest value of each key, by the number of the partition it is from.

- A value replaces what its key had; None deletes it. Which is the latest is the order in which records come here.
- Values are encoded when they come and decoded for each record that meets one: no function sees what another changed.
- A join reads the table and changes nothing: a record on which the function raises leaves no trace.
- A batch reads each of its keys at most once, and writes each at most once; see `twopc.operators.write_back_cache`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

from twopc.column import Over, extend_from, map_part
from twopc.operators.bound_state import decoded, encoded
from twopc.operators.function_step import FunctionStep
from twopc.operators.functions import function_name
from twopc.operators.how import How, check_how
from twopc.operators.instance import Instance, OnePortInstance, OperatorContext
from twopc.operators.keyed import KeyForms, partition_runs
from twopc.operators.result import Result
from twopc.operators.step import RECORDS, InputPort, Step
from twopc.operators.stored_numbers import Rows, total
from twopc.protocol.ids import checked_name
from twopc.record import Batch
from twopc.serde import Json, Serde, checked_state_serde
from twopc.state.layout import ROWS


@dataclass(frozen=True, slots=True)
class TableStep(Step):
    """What every table says."""

    name: str
    state: Serde
    operator = "table"
    keeps_key = True

    def __post_init__(self) -> None:
        checked_name("the name of a table", self.name)
        checked_state_serde(f"state of {self}", self.state)


@dataclass(frozen=True, slots=True)
class KeepTable(TableStep):
    """the latest value of each key, which joins look up; None deletes it"""

    by_key = keys_apart = True
    earlier_ports = (RECORDS.name,)

    @property
    def states(self) -> Mapping[str, Serde]:
        return {self.name: self.state, ROWS: Json()}

    @property
    def state_name(self) -> str:
        return self.name

    def open(self, context: OperatorContext) -> Instance:
        return TableOperator(self, context)

    def __str__(self) -> str:
        return f"table({self.name!r})"


@dataclass(frozen=True, slots=True)
class TableJoinStep(FunctionStep):
    """What every join with a table says; `table` is the operator id of that."""

    table: str
    how: How
    keeps_key = one_to_one = True
    ports = (RECORDS, InputPort("table", takes_records=False))

    def __post_init__(self) -> None:
        FunctionStep.__post_init__(self)
        check_how("a join with a table", self.how, How)

    @property
    def operator(self) -> str:
        return "join"

    def __str__(self) -> str:
        return f"join({function_name(self.function)}, how={self.how!r})"


@dataclass(frozen=True, slots=True)
class JoinTable(TableJoinStep):
    """(value, what the table has for its key) -> value"""

    by_key = keys_apart = True

    def open(self, context: OperatorContext) -> Instance:
        table = context.instances[self.table]
        assert isinstance(table, TableOperator)
        return TableJoin(self, table)


class TableOperator(OnePortInstance):
    """One table on one subtask. Nothing comes out of it: joins look into it."""

    def __init__(self, step: KeepTable, context: OperatorContext) -> None:
        self._step, self._context = step, context
        self._key_forms = KeyForms(step)
        self.states = context.cache(step.name)
        self._rows: dict[int, Rows] = {}

    def process(self, batch: Batch, over: Over) -> Result:
        """Keep the values of the batch, up to where `over` stops."""
        name, serde = self._step.name, self._step.state
        keys, bad_key = self._key_forms.of(batch)
        values, cause = map_part(lambda value: encoded(name, serde, value), batch.first(len(keys)).values, over)
        start = 0
        for partition, run in partition_runs(batch.rows[: len(values)], keys[: len(values)]):
            self._put(partition, run, values[start : start + len(run)])
            start += len(run)
        self.states.settle()
        return Result(len(values), batch.first(0), bad_key if len(values) == len(keys) else cause)

    def decoded(self, stored: bytes | None) -> Any:
        """Return a value of the table, as its serde gives it back; None for None."""
        return decoded(self._step.name, self._step.state, stored)

    def rows(self, numbers: Collection[int]) -> int | None:
        return total([self._rows_of(number).now for number in numbers])

    def write_back(self) -> None:
        self.states.write_back()
        for rows in self._rows.values():
            rows.write_back()

    def _put(self, partition: int, keys: list[bytes], values: list[bytes | None]) -> None:
        rows = self._rows_of(partition)
        if rows.now is None:
            self.states.put(partition, keys, values)
            return
        # Whether a key is new is known where the cache is whole, and read where it is not.
        self.states.fetch(partition, keys)
        held, different = self.states.of(partition)[0], set(keys)
        absent = list(map(held.get, different)).count(None)
        self.states.put(partition, keys, values)
        rows.changed(absent - list(map(held.get, different)).count(None))

    def _rows_of(self, partition: int) -> Rows:
        rows = self._rows.get(partition)
        if rows is None:
            rows = self._rows[partition] = Rows(self._context.operator_id, partition, self._context.store)
            # Nothing has been written yet: the first to write asks for them before.
            if self.states.store_is_empty(partition):
                rows.begin()
        return rows


class TableJoin(OnePortInstance):
    """The join of a stream with one table of the same subtask."""

    def __init__(self, step: JoinTable, table: TableOperator) -> None:
        self._step = step
        self._key_forms = KeyForms(step)
        self._table = table

    def process(self, batch: Batch, over: Over) -> Result:
        """Return what the function makes of each value and of what the table has, up to where `over` stops."""
        keys, bad_key = self._key_forms.of(batch)
        batch = batch.first(len(keys))
        result = joined(self._step, batch, self._looked_up(batch, keys), self._table.decoded, over)
        return result if result.cause is not None or result.taken < len(keys) else result._replace(cause=bad_key)

    def _looked_up(self, batch: Batch, keys: Sequence[bytes]) -> list[bytes | None]:
        found: list[bytes | None] = []
        states = self._table.states
        for partition, run in partition_runs(batch.rows, list(keys)):
            states.fetch(partition, run)
            found += map(states.of(partition)[0].get, run)
        states.settle()
        return found


def joined(
    step: TableJoinStep, batch: Batch, subjects: Sequence[Any], find: Callable[[Any], Any], over: Over
) -> Result:
    """Return what the function makes of each value and of what is found for its subject; None is nothing."""
    function, keeps_all = step.function, step.how == "left"
    counter = count()
    rest = over(list(zip(batch.values, subjects, strict=True)))
    kept: list[tuple[int, Any]] = []
    cause = extend_from(
        kept,
        (
            (index, function(value, found))
            for index, (value, subject) in zip(counter, rest, strict=False)
            if (found := find(subject)) is not None or keeps_all
        ),
        rest,
    )
    # A number was taken for the element that failed, or for the one that was not there.
    taken = next(counter) - 1
    output = batch.first(taken) if len(kept) == taken else batch.take([index for index, _ in kept])
    return Result(taken, output.with_values([value for _, value in kept]), cause)
