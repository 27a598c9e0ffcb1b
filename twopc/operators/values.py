"""Operators on the column of values. Keys, timestamps and headers are not looked at, so they are not even built."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import count
from typing import Any

from twopc.column import ColumnError, Over, last_taken, map_column
from twopc.record import Batch
from twopc.termination import TERMINATION

Result = tuple[int, Batch]
"""How many rows of a batch an operator has worked on, from the first on, and what it made of them."""


def map_values(function: Callable[[Any], Any], batch: Batch, over: Over) -> Result:
    """Replace each value by what the function returns, up to where `over` stops."""
    values = map_column(function, batch.values, over)
    return len(values), batch.first(len(values)).with_values(values)


def filter_values(predicate: Callable[[Any], Any], batch: Batch, over: Over) -> Result:
    """Keep the records for whose value the predicate is true, up to where `over` stops."""
    return keep(batch, predicate, batch.values, over)


def peek_values(function: Callable[[Any], Any], batch: Batch, over: Over) -> Result:
    count = len(map_column(function, batch.values, over))
    return count, batch.first(count)


def assign_timestamps(function: Callable[[Any], Any], batch: Batch, over: Over) -> Result:
    """Give each record the timestamp that the function returns for its value, up to where `over` stops."""
    timestamps = map_column(lambda value: _timestamp(function(value)), batch.values, over)
    return len(timestamps), batch.first(len(timestamps)).with_timestamps(timestamps)


def flat_map_values(function: Callable[[Any], Iterable[Any]], batch: Batch, over: Over) -> Result:
    """Make a record with the same key of each value that the function returns, up to where `over` stops."""
    groups = map_column(lambda value: collected(function(value)), batch.values, over)
    repeated = batch.take([index for index, group in enumerate(groups) for _ in group])
    return len(groups), repeated.with_values([value for group in groups for value in group])


def keep(batch: Batch, predicate: Callable[[Any], Any], column: list[Any], over: Over) -> Result:
    """Return the rows of the batch for whose element of `column` the predicate holds."""
    rest, counter = over(column), count()
    try:
        # The truth of the answer is asked inside as well: an array's, for one, raises.
        kept = [index for index, element in zip(counter, rest, strict=False) if predicate(element)]
    except TERMINATION:
        raise
    except BaseException as error:
        raise ColumnError(last_taken(rest), error) from error
    # zip has taken one number more, for an element that was not there.
    return next(counter) - 1, batch if len(kept) == len(batch) else batch.take(kept)


def _timestamp(produced: Any) -> int | None:
    if produced is None or (type(produced) is int and produced >= 0):
        return produced
    raise TypeError(f"the timestamp must be an integer, Unix milliseconds, or None, not {produced!r}")


def collected(produced: Any) -> list[Any]:
    """Return what a function of flat_map produced as a list of our own.

    A generator runs here, so that its errors have a record; a list is copied, because the function may use it again.
    """
    if type(produced) is list:
        return produced.copy()
    if isinstance(produced, str | bytes | dict) or not isinstance(produced, Iterable):
        raise TypeError(f"the function must return a list or another iterable, not {type(produced).__name__}")
    return list(produced)
