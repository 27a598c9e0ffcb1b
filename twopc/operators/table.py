"""table, and the join of a stream with one: the latest value of each key, by the number of the partition it is from.

- A value replaces what its key had; None deletes it. Which is the latest is the order in which records come here.
- Values are encoded when they come and decoded for each record that meets one: no function sees what another changed.
- A join reads the table and changes nothing: a record on which the function raises leaves no trace.
- A batch reads each of its keys at most once, and writes each at most once; see `twopc.operators.write_back_cache`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import count
from typing import Any

from twopc.column import Over, extend_from, map_part
from twopc.operators.bound_state import decoded, encoded
from twopc.operators.keyed import KeyForms, partition_runs
from twopc.operators.steps import JoinBroadcast, JoinTable, KeepTable
from twopc.operators.values import Result
from twopc.operators.write_back_cache import WriteBackCache
from twopc.record import Batch


class TableOperator:
    """One table on one subtask. Nothing comes out of it: joins look into it."""

    def __init__(self, step: KeepTable, states: WriteBackCache) -> None:
        self._step = step
        self._key_forms = KeyForms(step)
        self.states = states

    def process(self, batch: Batch, over: Over) -> Result:
        """Keep the values of the batch, up to where `over` stops."""
        name, serde = self._step.name, self._step.state
        keys, bad_key = self._key_forms.of(batch)
        values, cause = map_part(lambda value: encoded(name, serde, value), batch.first(len(keys)).values, over)
        start = 0
        for partition, run in partition_runs(batch.rows[: len(values)], keys[: len(values)]):
            self.states.put(partition, run, values[start : start + len(run)])
            start += len(run)
        self.states.settle()
        return Result(len(values), batch.first(0), bad_key if len(values) == len(keys) else cause)

    def decoded(self, stored: bytes | None) -> Any:
        """Return a value of the table, as its serde gives it back; None for None."""
        return decoded(self._step.name, self._step.state, stored)

    def side_output(self, name: str) -> Batch:
        """A table has none."""
        raise AssertionError(f"{self._step} has no output {name!r}")

    def write_back(self) -> None:
        """Bring the store up to every batch so far."""
        self.states.write_back()


class TableJoin:
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
    step: JoinTable | JoinBroadcast, batch: Batch, subjects: Sequence[Any], find: Callable[[Any], Any], over: Over
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
