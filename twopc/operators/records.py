"""Operators on whole records: only these make `Record` objects, and take them apart into columns again."""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass
from typing import Any

from twopc.column import Over, map_part
from twopc.operators.function_step import ColumnStep
from twopc.operators.functions import Function
from twopc.operators.result import Result
from twopc.operators.values import checked_key, collected, keep
from twopc.record import Batch, Record, Row


def map_records(function: Callable[[Record], Record], batch: Batch, over: Over) -> Result:
    """Replace each record by what the function returns, up to where `over` stops."""
    records, cause = map_part(lambda record: checked(function(record)), batch.records(), over)
    return Result(len(records), as_batch(list(batch.rows[: len(records)]), records), cause)


def filter_records(predicate: Callable[[Record], Any], batch: Batch, over: Over) -> Result:
    """Keep the records for which the predicate is true, up to where `over` stops."""
    return keep(batch, predicate, batch.records(), over)


def key_by_records(function: Callable[[Record], Any], batch: Batch, over: Over) -> Result:
    """Give each record the key that the function returns for it, up to where `over` stops."""
    keys, cause = map_part(lambda record: checked_key(function(record)), batch.records(), over)
    return Result(len(keys), batch.first(len(keys)).with_keys(keys), cause)


def peek_records(function: Callable[[Record], Any], batch: Batch, over: Over) -> Result:
    results, cause = map_part(function, batch.records(), over)
    return Result(len(results), batch.first(len(results)), cause)


def print_record(label: str, record: Record) -> None:
    """Write a record to standard output, one line, at once."""
    place = f"{record.topic}[{record.partition}]@{record.offset}"
    sys.stdout.write(f"{label}{': ' if label else ''}{place} {record.key!r}: {record.value!r}\n")
    sys.stdout.flush()


def flat_map_records(function: Callable[[Record], Iterable[Record]], batch: Batch, over: Over) -> Result:
    """Replace each record by all that the function returns, up to where `over` stops."""

    def produce(record: Record) -> list[Record]:
        return [checked(produced) for produced in collected(function(record))]

    groups, cause = map_part(produce, batch.records(), over)
    rows = [row for row, group in zip(batch.rows, groups, strict=False) for _ in group]
    return Result(len(groups), as_batch(rows, [record for group in groups for record in group]), cause)


def same_key(function: Callable[[Record], Record]) -> Callable[[Record], Record]:
    """Return the function, which raises where it returns a record with another key."""
    return lambda record: kept(record.key, checked(function(record)))


def same_keys(function: Callable[[Record], Iterable[Record]]) -> Callable[[Record], list[Record]]:
    """The same of one that returns several."""
    return lambda record: [kept(record.key, checked(produced)) for produced in collected(function(record))]


def kept(key: Any, produced: Record) -> Record:
    """Return a record that has this key; raise ValueError for another."""
    refuse_other_key(key, produced.key)
    return produced


def refuse_other_key(key: Any, produced: Any) -> None:
    """Raise ValueError for another key than a record had: state behind it would be in a wrong place."""
    if type(produced) is not type(key) or produced != key:
        raise ValueError(
            "what was returned has another key than the record that was given, and the job says keeps_key=True: leave "
            "the key as it is, or take that away"
        )


def as_batch(rows: list[Row], records: list[Record]) -> Batch:
    return Batch(
        rows,
        [record.value for record in records],
        [record.key for record in records],
        [record.timestamp for record in records],
        [record.headers for record in records],
    )


def checked(produced: Any) -> Record:
    """Return what a function produced as the record that it must be."""
    if not isinstance(produced, Record):
        raise TypeError(
            f"the function must return a Record, not {type(produced).__name__}: start from record.replace(...), "
            "and drop records with filter_records"
        )
    return produced


def collected_records(produced: Any, outputs: list[Record]) -> None:
    """Add what a function produced; a generator runs here, so that its errors have a record."""
    if produced is None:
        return
    if isinstance(produced, Record):
        outputs.append(produced)
        return
    if isinstance(produced, str | bytes | dict) or not isinstance(produced, Iterable):
        raise TypeError(f"the function must return or yield Records, or None, not {type(produced).__name__}")
    try:
        outputs.extend(map(checked, produced))
    finally:
        # One that is left in its middle would end at some time or other, in the call of another key.
        if isinstance(produced, Generator):
            produced.close()


@dataclass(frozen=True, slots=True)
class MapRecords(ColumnStep):
    """record -> record; each has the key of the other where the job says that, which is checked"""

    keeps_key: bool = False
    one_to_one = feeds_broadcast = True
    over_batch = staticmethod(map_records)

    @property
    def called(self) -> Function:
        return same_key(self.function) if self.keeps_key else self.function


@dataclass(frozen=True, slots=True)
class FilterRecords(ColumnStep):
    """record -> whether to keep it"""

    keeps_key = keeps_values = one_to_one = feeds_broadcast = True
    over_batch = staticmethod(filter_records)


@dataclass(frozen=True, slots=True)
class FlatMapRecords(ColumnStep):
    """record -> records; each has its key where the job says that, which is checked"""

    keeps_key: bool = False
    feeds_broadcast = True
    over_batch = staticmethod(flat_map_records)

    @property
    def called(self) -> Function:
        return same_keys(self.function) if self.keeps_key else self.function


@dataclass(frozen=True, slots=True)
class PeekRecords(ColumnStep):
    """record -> whatever: it goes on as it is"""

    keeps_key = keeps_values = one_to_one = feeds_broadcast = True
    over_batch = staticmethod(peek_records)


@dataclass(frozen=True, slots=True)
class Print(PeekRecords):
    """The function writes the record, under the label, to standard output."""

    label: str = ""

    def __str__(self) -> str:
        return f"print({self.label!r})" if self.label else "print()"


@dataclass(frozen=True, slots=True)
class KeyByRecords(ColumnStep):
    """record -> key, anything but None"""

    one_to_one = True
    over_batch = staticmethod(key_by_records)
