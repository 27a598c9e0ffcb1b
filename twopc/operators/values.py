"""Operators on the column of values. Keys, timestamps and headers are not looked at, so they are not even built."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import count
from typing import Any

from twopc.column import ColumnError, last_taken, map_column
from twopc.record import Batch
from twopc.termination import TERMINATION


def map_values(function: Callable[[Any], Any], batch: Batch) -> Batch:
    return batch.with_values(map_column(function, batch.values))


def filter_values(predicate: Callable[[Any], Any], batch: Batch) -> Batch:
    return keep(batch, predicate, batch.values)


def flat_map_values(function: Callable[[Any], Iterable[Any]], batch: Batch) -> Batch:
    groups = map_column(lambda value: collected(function(value)), batch.values)
    repeated = batch.take([index for index, group in enumerate(groups) for _ in group])
    return repeated.with_values([value for group in groups for value in group])


def keep(batch: Batch, predicate: Callable[[Any], Any], column: list[Any]) -> Batch:
    """Return the rows of the batch for whose element of `column` the predicate holds."""
    rest = iter(column)
    try:
        # The truth of the answer is asked inside as well: an array's, for one, raises.
        kept = [index for index, element in zip(count(), rest, strict=False) if predicate(element)]
    except TERMINATION:
        raise
    except BaseException as error:
        raise ColumnError(last_taken(column, rest), error) from error
    return batch if len(kept) == len(batch) else batch.take(kept)


def collected(produced: Any) -> list[Any]:
    """Return what a function of flat_map produced as a list of our own.

    A generator runs here, so that its errors have a record; a list is copied, because the function may use it again.
    """
    if type(produced) is list:
        return produced.copy()
    if isinstance(produced, str | bytes | dict) or not isinstance(produced, Iterable):
        raise TypeError(f"the function must return a list or another iterable, not {type(produced).__name__}")
    return list(produced)
