"""Arrow's arrays as packed columns, and packed columns as Arrow's arrays: the buffers are the same, none is copied."""

from __future__ import annotations

from array import array
from collections.abc import Iterable

import pyarrow as pa

from twopc.packed_column import Buffers, Column, PackedColumn


def to_column(array: pa.Array) -> Column:
    """Return bytes and text as they are, and objects of all else."""
    if not (pa.types.is_binary(array.type) or pa.types.is_string(array.type)):
        return array.to_pylist()  # type: ignore[no-any-return]
    validity, offsets, data = array.buffers()
    return PackedColumn(Buffers(len(array), array.offset, validity, offsets, data or b""), array.to_pylist)


def int32_array(numbers: Iterable[int]) -> pa.Array:
    """Return these numbers as Arrow's. Of objects `pa.array` would import pandas first, if there is one: 0.25 s."""
    made = array("i", numbers)
    return pa.Array.from_buffers(pa.int32(), len(made), [None, pa.py_buffer(made)])


def to_array(column: Buffers, kind: pa.DataType) -> pa.Array:
    """Return the array of this type, binary or int64, that has these buffers."""
    buffers = [None if each is None else pa.py_buffer(each) for each in (column.validity, column.offsets, column.data)]
    if column.offsets is None:
        del buffers[1]
    return pa.Array.from_buffers(kind, column.length, buffers, offset=column.start)
