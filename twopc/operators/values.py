"""Operators on the column of values. Keys, timestamps and headers are not looked at, so they are not even built."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import compress, count
from typing import Any

from twopc.clock import LATEST_MS
from twopc.column import Over, extend_from, map_part
from twopc.operators.function_step import ColumnStep
from twopc.operators.result import Result
from twopc.record import Batch


def map_values(function: Callable[[Any], Any], batch: Batch, over: Over) -> Result:
    """Replace each value by what the function returns, up to where `over` stops."""
    values, cause = map_part(function, batch.values, over)
    return Result(len(values), batch.first(len(values)).with_values(values), cause)


def filter_values(predicate: Callable[[Any], Any], batch: Batch, over: Over) -> Result:
    """Keep the records for whose value the predicate is true, up to where `over` stops."""
    return keep(batch, predicate, batch.values, over)


def peek_values(function: Callable[[Any], Any], batch: Batch, over: Over) -> Result:
    results, cause = map_part(function, batch.values, over)
    return Result(len(results), batch.first(len(results)), cause)


def assign_timestamps(function: Callable[[Any], Any], batch: Batch, over: Over) -> Result:
    """Give each record the timestamp that the function returns for its value, up to where `over` stops.

    A record for which it returns None keeps its own, and so does one without a value, of which it is not asked.
    """
    timestamps, cause = map_part(
        lambda value: None if value is None else _timestamp(function(value)), batch.values, over
    )
    done = batch.first(len(timestamps))
    if None in timestamps:
        timestamps = [
            own if timestamp is None else timestamp for timestamp, own in zip(timestamps, done.timestamps, strict=True)
        ]
    return Result(len(timestamps), done.with_timestamps(timestamps), cause)


def key_by_values(function: Callable[[Any], Any], batch: Batch, over: Over) -> Result:
    """Give each record the key that the function returns for its value, up to where `over` stops."""
    keys, cause = map_part(lambda value: checked_key(function(value)), batch.values, over)
    return Result(len(keys), batch.first(len(keys)).with_keys(keys), cause)


def flat_map_values(function: Callable[[Any], Iterable[Any]], batch: Batch, over: Over) -> Result:
    """Make a record with the same key of each value that the function returns, up to where `over` stops."""
    groups, cause = map_part(lambda value: collected(function(value)), batch.values, over)
    repeated = batch.take([index for index, group in enumerate(groups) for _ in group])
    return Result(len(groups), repeated.with_values([value for group in groups for value in group]), cause)


def keep(batch: Batch, predicate: Callable[[Any], Any], column: list[Any], over: Over) -> Result:
    """Return the rows of the batch for whose element of `column` the predicate holds."""
    rest, counter = over(column), count()
    kept: list[int] = []
    # The truth of the answer is asked inside as well: an array's, for one, raises.
    cause = extend_from(kept, compress(counter, map(predicate, rest)), rest)
    # A number was taken for the element that failed, or for the one that was not there.
    taken = next(counter) - 1
    return Result(taken, batch if len(kept) == len(batch) else batch.take(kept), cause)


def _timestamp(produced: Any) -> int | None:
    if produced is None or (type(produced) is int and 0 <= produced <= LATEST_MS):
        return produced
    raise TypeError(
        f"the timestamp must be an integer, Unix milliseconds up to the year 9999, or None, not {produced!r}"
    )


def checked_key(produced: Any) -> Any:
    """Return what a function produced as the key that it must be."""
    if produced is None:
        raise TypeError("the key of a record can't be None: leave records without one out, with filter before key_by")
    return produced


def collected(produced: Any) -> list[Any]:
    """Return what a function of flat_map produced as a list of our own.

    A generator runs here, so that its errors have a record; a list is copied, because the function may use it again.
    """
    if type(produced) is list:
        return produced.copy()
    if isinstance(produced, str | bytes | dict) or not isinstance(produced, Iterable):
        raise TypeError(f"the function must return a list or another iterable, not {type(produced).__name__}")
    return list(produced)


@dataclass(frozen=True, slots=True)
class Map(ColumnStep):
    """value -> value"""

    keeps_key = one_to_one = feeds_broadcast = True
    over_batch = staticmethod(map_values)


@dataclass(frozen=True, slots=True)
class Filter(ColumnStep):
    """value -> whether to keep the record"""

    keeps_key = keeps_values = one_to_one = feeds_broadcast = True
    over_batch = staticmethod(filter_values)


@dataclass(frozen=True, slots=True)
class FlatMap(ColumnStep):
    """value -> values, each with the key, timestamp and headers of the input"""

    keeps_key = feeds_broadcast = True
    over_batch = staticmethod(flat_map_values)


@dataclass(frozen=True, slots=True)
class Peek(ColumnStep):
    """value -> whatever: the record goes on as it is"""

    keeps_key = keeps_values = one_to_one = feeds_broadcast = True
    over_batch = staticmethod(peek_values)


@dataclass(frozen=True, slots=True)
class AssignTimestamps(ColumnStep):
    """value -> timestamp in Unix milliseconds, or None for the record's own"""

    keeps_key = keeps_values = one_to_one = feeds_broadcast = True
    over_batch = staticmethod(assign_timestamps)


@dataclass(frozen=True, slots=True)
class KeyBy(ColumnStep):
    """value -> key, anything but None"""

    one_to_one = True
    over_batch = staticmethod(key_by_values)
