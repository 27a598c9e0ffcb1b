"""map_batches: a function over a whole batch as an Arrow table, for code that is vectorised itself.

- The function gets a `pyarrow.RecordBatch` with the columns `key`, `value`, `timestamp` (Unix milliseconds) and `row`
  (0, 1, 2, ...), and returns one with at least `value`. Columns that it leaves out stay as they were.
- `row` says which input record an output record comes from: it has that record's headers, is named by it in errors,
  and keeps its place in the order of its partition. Without `row` there must be as many records as there were.
- Which record a failure is of the function is asked by smaller parts, half as long each, down to one record; parts
  grow again behind it, twice as long each. So what it raises is an error of one record, and it may be called again.
- A result of another shape than was asked for, or with another key than the job says, ends the job, whatever the policy
  for records that go wrong.
- Where no type is given, records of one call have the Arrow type that each has by itself (`own_arrow_type`).
- How many records a batch has is nothing to rely on: it follows the load, and a replay cuts it elsewhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import chain, pairwise
from typing import Any

import pyarrow as pa

from twopc.arrow import int32_array, to_array, to_column
from twopc.column import Over, failure_at, span
from twopc.operators.batch_step import MapBatches
from twopc.operators.instance import OnePortInstance
from twopc.operators.own_arrow_type import OwnTypes
from twopc.operators.records import refuse_other_key
from twopc.operators.result import Result
from twopc.packed_column import Column, PackedColumn
from twopc.record import Batch
from twopc.termination import TERMINATION

COLUMNS = ("key", "value", "timestamp", "row")


_ALL = 2**30
"""More than a batch has."""


class BatchMap(OnePortInstance):
    """One map_batches on one subtask."""

    def __init__(self, step: MapBatches) -> None:
        self._step = step
        self._most = _ALL
        self._types = OwnTypes()

    def process(self, batch: Batch, _over: Over) -> Result:
        """Give the batch to the function as Arrow; raise UserCodeError where it returns another shape."""
        made: list[Batch] = []
        taken = 0
        while taken < len(batch):
            part = batch.part(taken, min(taken + self._most, len(batch)))
            try:
                given = as_arrow(self._step, part, self._types)
                if given.num_rows < len(part):
                    # Types change here, and will again: what is behind them is not looked at once for every run.
                    self._most = given.num_rows
                    part = part.first(given.num_rows)
                produced = self._step.function(given)
            except TERMINATION:
                raise
            except BaseException as error:  # noqa: BLE001 - it is an error of one of these records
                if len(part) == 1:
                    return Result(taken, _joined(batch, made), error)
                self._most = len(part) // 2
                continue
            made.append(self._taken_over(part, given, produced))
            taken += len(part)
            self._most = min(2 * self._most, _ALL)
        return Result(taken, _joined(batch, made))

    def _taken_over(self, part: Batch, given: pa.RecordBatch, produced: Any) -> Batch:
        try:
            return _as_batch(part, given, _checked(produced, len(part)), keeps_key=self._step.keeps_key)
        except Exception as error:
            raise failure_at(span(part.rows), str(self._step), error) from error


def _joined(batch: Batch, parts: Sequence[Batch]) -> Batch:
    """Return what was made of the first parts of a batch."""
    if len(parts) == 1:
        return parts[0]
    if not parts:
        return batch.first(0)
    rows, values, keys, timestamps, headers = (
        list(chain.from_iterable(columns))
        for columns in zip(
            *((part.rows, part.values, part.keys, part.timestamps, part.headers) for part in parts), strict=True
        )
    )
    return Batch(rows, values, keys, timestamps, headers)


def as_arrow(step: MapBatches, batch: Batch, types: OwnTypes) -> pa.RecordBatch:
    """Return the first records of a batch: all whose keys have one type, and whose values have one."""
    key_type, keys = _type(batch.key_column, step.key_type, types)
    value_type, values = _type(batch.value_column, step.value_type, types)
    batch = batch.first(min(keys, values))
    stamps = batch.timestamp_column
    arrays = [
        _array(batch.key_column, key_type),
        _array(batch.value_column, value_type),
        to_array(stamps.buffers, pa.int64()) if isinstance(stamps, PackedColumn) else pa.array(stamps, pa.int64()),
        _numbers(len(batch).bit_length()).slice(0, len(batch)),
    ]
    return pa.RecordBatch.from_arrays(arrays, names=list(COLUMNS))


def _type(column: Column, wanted: pa.DataType | None, types: OwnTypes) -> tuple[pa.DataType, int]:
    """Return the type of a column's first values, and of how many."""
    if wanted is not None:
        return wanted, len(column)
    return (pa.binary(), len(column)) if isinstance(column, PackedColumn) else types.first_run(column)


def _array(column: Column, wanted: pa.DataType) -> pa.Array:
    return _of_bytes(column, wanted) if isinstance(column, PackedColumn) else pa.array(column, wanted)


_TYPES_OF_BYTES = frozenset({pa.binary(), pa.large_binary(), pa.string(), pa.large_string()})
"""The types that bytes are cast to all at once, with the result that they have one by one."""


@lru_cache(maxsize=2)
def _numbers(bits: int) -> pa.Array:
    """Return all numbers of so many bits."""
    return int32_array(range(1 << bits))


def _of_bytes(column: PackedColumn, wanted: pa.DataType) -> pa.Array:
    if wanted not in _TYPES_OF_BYTES:
        # A cast would parse a number where one object after the other is refused.
        return pa.array(column.unpack(), wanted)
    return to_array(column.buffers, pa.binary()).cast(wanted)


def _checked(produced: Any, size: int) -> pa.RecordBatch:
    if not isinstance(produced, pa.RecordBatch):
        raise TypeError(f"the function must return a pyarrow.RecordBatch, not {type(produced).__name__}")
    names = produced.schema.names
    if strange := sorted(set(names) - set(COLUMNS)):
        raise ValueError(f"the function returned a column {strange[0]!r}: there are only {', '.join(COLUMNS)}")
    if "value" not in names:
        raise ValueError("the function returned no column 'value'")
    if "row" not in names and produced.num_rows != size:
        raise ValueError(
            f"the function returned {produced.num_rows} records for {size}, without the column 'row' that says which "
            "input record each comes from: keep it, as filter() and take() do by themselves"
        )
    return produced


def _as_batch(batch: Batch, given: pa.RecordBatch, produced: pa.RecordBatch, *, keeps_key: bool) -> Batch:
    names = produced.schema.names
    if "row" in names and not produced.column("row").equals(given.column("row")):
        rows = _rows(produced.column("row").to_pylist(), len(batch))
        batch, given = batch.take(rows), given.take(int32_array(rows))
    made = batch.with_values(to_column(produced.column("value")))
    if "key" in names:
        made = made.with_keys(to_column(produced.column("key")))
        if keeps_key:
            for key, produced_key in zip(batch.keys, made.keys, strict=True):
                refuse_other_key(key, produced_key)
    if "timestamp" in names and not produced.column("timestamp").equals(given.column("timestamp")):
        made = made.with_timestamps(produced.column("timestamp").to_pylist())
    return made


def _rows(rows: Sequence[int | None], size: int) -> list[int]:
    """Check what the function made of the column `row`; only an increasing one keeps the order of the partitions."""
    checked = [row for row in rows if row is not None and 0 <= row < size]
    if len(checked) != len(rows):
        raise ValueError(f"the column 'row' must name input records, 0 to {size - 1}")
    if any(later < earlier for earlier, later in pairwise(checked)):
        raise ValueError("the column 'row' must not decrease: records would leave the order of their partition")
    return checked
