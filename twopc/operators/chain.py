"""The run-time of a job's steps: one batch in, one batch out, order kept.

A user function that raises makes a UserCodeError that names the record, the operator and the cause. The batch is then
lost to this attempt: nothing of it reaches the sink.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import assert_never

from twopc.column import ColumnError, user_code_error
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
from twopc.operators.values import filter_values, flat_map_values, map_values
from twopc.record import Batch


class Chain:
    """The steps of one subtask, with the store that holds their keyed state."""

    def __init__(self, steps: Sequence[Step], store: KeyedStateStore) -> None:
        keyed = [step for step in steps if isinstance(step, StatefulMap)]
        self._keyed = {step.name: KeyedOperator(step, HeldStates(step.name, store, len(keyed))) for step in keyed}
        self._operators = [(step, self._operator(step)) for step in steps]

    def process(self, batch: Batch) -> Batch:
        """Return what the steps make of the batch, in its order. May be empty."""
        for step, operate in self._operators:
            if len(batch) == 0:
                break
            try:
                batch = operate(batch)
            except ColumnError as error:
                raise user_code_error(batch.rows[error.index], str(step), error.cause) from error.cause
        return batch

    def write_back(self) -> None:
        """Bring the store up to every batch so far; a snapshot of it holds nothing else."""
        for operator in self._keyed.values():
            operator.write_back()

    def _operator(self, step: Step) -> Callable[[Batch], Batch]:
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
