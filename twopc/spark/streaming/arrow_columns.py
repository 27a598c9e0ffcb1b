"""A record's columns as Arrow has them: how large they are, and how those become it that Spark gives us as they are."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from twopc.spark.streaming.rows import HEADERS, KEY, TIMESTAMP, VALUE

_HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))


def size_of(columns: pa.RecordBatch) -> int:
    """Return the bytes of keys and values."""
    sizes = (pc.sum(pc.binary_length(columns[name])).as_py() for name in (KEY, VALUE) if name in columns.schema.names)
    return sum(size or 0 for size in sizes)


def as_record_batch(columns: pa.RecordBatch) -> pa.RecordBatch:
    """Return the columns in the form that a record has: bytes, and Unix milliseconds."""
    names = columns.schema.names
    return pa.RecordBatch.from_arrays([_as_record_column(name, columns[name]) for name in names], names)


def _as_record_column(name: str, column: pa.Array) -> pa.Array:
    if name in (KEY, VALUE):
        return column.cast(pa.binary())
    if name == TIMESTAMP and pa.types.is_timestamp(column.type):
        return column.cast(pa.timestamp("ms", column.type.tz), safe=False).cast(pa.int64())
    if name == HEADERS:
        return column.cast(_HEADERS)
    return column
