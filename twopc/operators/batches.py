"""map_batches: a function over a whole batch as an Arrow table, for code that is vectorised itself.

- The function gets a `pyarrow.RecordBatch` with the columns `key`, `value`, `timestamp` (Unix milliseconds) and `row`
  (0, 1, 2, ...), and returns one with at least `value`. Columns that it leaves out stay as they were.
- `row` says which input record an output record comes from: it has that record's headers, is named by it in errors,
  and keeps its place in the order of its partition. Without `row` there must be as many records as there were.
- Which record a failure is of nobody knows, so it ends the job, whatever the policy for records that go wrong.
- How many records a batch has is nothing to rely on: it follows the load, and a replay cuts it elsewhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pyarrow as pa

from twopc.column import Over, failure_at, span
from twopc.operators.steps import MapBatches
from twopc.operators.values import Result
from twopc.record import Batch
from twopc.termination import TERMINATION

COLUMNS = ("key", "value", "timestamp", "row")


def map_batches(step: MapBatches, batch: Batch, _over: Over) -> Result:
    """Give the whole batch to the function as Arrow; raise UserCodeError where it fails, or returns another shape."""
    try:
        produced = step.function(_as_arrow(step, batch))
        return Result(len(batch), _as_batch(batch, _checked(produced, len(batch))))
    except TERMINATION:
        raise
    except BaseException as error:
        raise failure_at(span(batch.rows), str(step), error) from error


def _as_arrow(step: MapBatches, batch: Batch) -> pa.RecordBatch:
    arrays = [
        pa.array(batch.keys, step.key_type),
        _values(batch.values, step.value_type),
        pa.array(batch.timestamps, pa.int64()),
        pa.array(range(len(batch)), pa.int32()),
    ]
    return pa.RecordBatch.from_arrays(arrays, names=list(COLUMNS))


def _values(values: list[Any], value_type: pa.DataType | None) -> pa.Array:
    try:
        return pa.array(values, value_type)
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        hint = "give map_batches the Arrow type that all values have, value_type=pa.struct(...)"
        raise TypeError(f"the values don't fit into one column ({error}): {hint}") from error


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


def _as_batch(batch: Batch, produced: pa.RecordBatch) -> Batch:
    names = produced.schema.names
    if "row" in names:
        batch = batch.take(_rows(produced.column("row").to_pylist(), len(batch)))
    keys = produced.column("key").to_pylist() if "key" in names else batch.keys
    stamps = produced.column("timestamp").to_pylist() if "timestamp" in names else batch.timestamps
    return Batch(batch.rows, produced.column("value").to_pylist(), keys, stamps, batch.headers)


def _rows(rows: Sequence[int | None], size: int) -> list[int]:
    """Check what the function made of the column `row`; only an increasing one keeps the order of the partitions."""
    checked = [row for row in rows if row is not None and 0 <= row < size]
    if len(checked) != len(rows):
        raise ValueError(f"the column 'row' must name input records, 0 to {size - 1}")
    if any(later < earlier for earlier, later in pairwise(checked)):
        raise ValueError("the column 'row' must not decrease: records would leave the order of their partition")
    return checked
