"""The run-time of a job's steps: batches in, batches out, order kept.

A user function that raises makes a UserCodeError that names the record, the operator and the cause. The batch is then
lost to this attempt: nothing of it reaches the sink.

A batch can be cut between two of its records, up to and including the first step that keeps a state or makes several
records of one: what is behind the cut waits at that step. Nothing that waits has changed a state or reached the sink,
so whoever stores positions stores those of the first rows that wait.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import assert_never

from twopc.column import ColumnError, ColumnLoop, Over, locate, span, user_code_error
from twopc.operators.held import HeldStates, KeyedStateStore
from twopc.operators.keyed import KeyedOperator
from twopc.operators.records import filter_records, flat_map_records, map_records
from twopc.operators.steps import (
    Filter,
    FilterRecords,
    FlatMap,
    FlatMapRecords,
    Map,
    MapBatches,
    MapRecords,
    StatefulMap,
    Step,
)
from twopc.operators.values import Result, filter_values, flat_map_values, map_values
from twopc.record import Batch, Row

_ONE_TO_ONE = (Map, Filter, MapRecords, FilterRecords)
"""After these a row still stands for a whole input record of which nothing else is known yet."""


class Chain:
    """The steps of one subtask, with the store that holds their keyed state."""

    def __init__(self, steps: Sequence[Step], store: KeyedStateStore) -> None:
        keyed = [step for step in steps if isinstance(step, StatefulMap)]
        self._keyed = {step.name: KeyedOperator(step, HeldStates(step.name, store, len(keyed))) for step in keyed}
        self._operators = [(step, self._operator(step)) for step in steps]
        self._cuts_end = 1 + next(
            (number for number, step in enumerate(steps) if not isinstance(step, _ONE_TO_ONE)), len(steps)
        )
        self._loop = ColumnLoop()
        self._waiting: list[tuple[int, Batch]] = []
        self._at: tuple[Step, Batch] | None = None

    @property
    def waits(self) -> bool:
        """Whether there is something to `advance`."""
        return bool(self._waiting)

    def waiting_rows(self) -> Iterator[Row]:
        """Yield the rows that were put in and have not come out, in their order."""
        for _, batch in reversed(self._waiting):
            yield from batch.rows

    def put(self, batch: Batch) -> None:
        """Let a batch wait at the first step; nothing else may wait."""
        assert not self._waiting, "the order of records is kept"
        self._waiting.append((0, batch))

    def advance(self) -> Result:
        """Bring what waits first through the steps, as far as nobody cuts it; return how many rows, and the output."""
        start, batch = self._waiting.pop()
        count = len(batch)
        for number, (step, operate) in enumerate(self._operators[start:], start):
            if len(batch) == 0:
                break
            cuttable = number < self._cuts_end
            taken, output = self._apply(step, operate, batch, self._loop.until_cut if cuttable else self._loop.whole)
            if taken < len(batch):
                rest = batch.behind(taken)
                self._waiting.append((number, rest))
                count -= len(rest)
            batch = output
        return count, batch

    def process(self, batch: Batch) -> Batch:
        """Return what the steps make of the whole batch, in its order. May be empty."""
        for step, operate in self._operators:
            if len(batch) == 0:
                break
            _, batch = self._apply(step, operate, batch, self._loop.whole)
        return batch

    def cut(self) -> None:
        """Let `advance` return soon, with what it has done until then. Another thread may call."""
        self._loop.cut()

    def place(self) -> str | None:
        """Return which record is in which step just now; None between two batches. Another thread may ask."""
        at, index = self._at, self._loop.index()
        if at is None:
            return None
        step, batch = at
        known = 0 <= index < len(batch)
        return f"{step} at {f'record {locate(batch.rows[index])}' if known else span(batch.rows)}"

    def write_back(self) -> None:
        """Bring the store up to every batch so far; a snapshot of it holds nothing else."""
        for operator in self._keyed.values():
            operator.write_back()

    def _apply(self, step: Step, operate: Callable[[Batch, Over], Result], batch: Batch, over: Over) -> Result:
        self._at = step, batch
        try:
            return operate(batch, over)
        except ColumnError as error:
            raise user_code_error(batch.rows[error.index], str(step), error.cause) from error.cause
        finally:
            self._at = None
            self._loop.done()

    def _operator(self, step: Step) -> Callable[[Batch, Over], Result]:
        match step:
            case Map(function):
                return partial(map_values, function)
            case Filter(function):
                return partial(filter_values, function)
            case FlatMap(function):
                return partial(flat_map_values, function)
            case MapRecords(function):
                return partial(map_records, function)
            case FilterRecords(function):
                return partial(filter_records, function)
            case FlatMapRecords(function):
                return partial(flat_map_records, function)
            case StatefulMap():
                return self._keyed[step.name].process
            case MapBatches():
                # Arrow takes a while to import, and most jobs do without.
                from twopc.operators.batches import map_batches

                return partial(map_batches, step)
            case _:
                assert_never(step)
