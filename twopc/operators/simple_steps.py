"""The steps that are one function over a batch, and those after which a row is what it was."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from twopc.column import Over
from twopc.operators.records import (
    filter_records,
    flat_map_records,
    key_by_records,
    map_records,
    peek_records,
    same_key,
    same_keys,
)
from twopc.operators.steps import (
    AssignTimestamps,
    Filter,
    FilterRecords,
    FlatMap,
    FlatMapRecords,
    JoinBroadcast,
    JoinTable,
    KeyBy,
    KeyByRecords,
    Map,
    MapAsync,
    MapAsyncRecords,
    MapRecords,
    Peek,
    PeekRecords,
    Print,
    Step,
)
from twopc.operators.values import (
    Result,
    assign_timestamps,
    filter_values,
    flat_map_values,
    key_by_values,
    map_values,
    peek_values,
)
from twopc.record import Batch


def one_function(step: Any) -> Callable[[Batch, Over], Result]:
    """Return the operator of a step that is one function."""
    match step:
        case MapRecords(keeps_key=True):
            return partial(map_records, same_key(step.function))
        case FlatMapRecords(keeps_key=True):
            return partial(flat_map_records, same_keys(step.function))
        case _:
            return partial(OPERATIONS[type(step)], step.function)


OPERATIONS: dict[type[Step], Callable[..., Result]] = {
    Map: map_values,
    Filter: filter_values,
    FlatMap: flat_map_values,
    MapRecords: map_records,
    FilterRecords: filter_records,
    FlatMapRecords: flat_map_records,
    Peek: peek_values,
    PeekRecords: peek_records,
    Print: peek_records,
    AssignTimestamps: assign_timestamps,
    KeyBy: key_by_values,
    KeyByRecords: key_by_records,
}
"""The operators of the steps that are one function."""

ONE_TO_ONE = (
    Map,
    Filter,
    MapRecords,
    FilterRecords,
    Peek,
    PeekRecords,
    AssignTimestamps,
    KeyBy,
    KeyByRecords,
    MapAsync,
    MapAsyncRecords,
    JoinTable,
    JoinBroadcast,
)
"""After these a row still stands for a whole input record of which nothing else is known yet."""
