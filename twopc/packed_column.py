"""A column as Arrow lays it out: whoever passes it on makes no object of an element."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from struct import Struct
from typing import Any, NamedTuple

_OFFSET = Struct("=i")
_INTEGER = Struct("=q")


class Buffers(NamedTuple):
    """Arrow's buffers, each an object with Python's buffer protocol."""

    length: int
    start: int
    """Which element of the buffers is the column's first."""

    validity: Any | None
    """None where there is every element."""

    offsets: Any | None
    """Of 32 bits; None for a column of integers, which have 64."""

    data: Any


@dataclass(frozen=True, slots=True)
class PackedColumn:
    """Bytes, text or integers; `unpack` returns them as objects, None where there are none."""

    buffers: Buffers
    unpack: Callable[[], list[Any]] = field(repr=False)

    def __len__(self) -> int:
        return self.buffers.length

    def size(self) -> int:
        """Return how many bytes a column of bytes or text has."""
        first, end = self._span(0, len(self))
        return end - first

    def raw(self, index: int) -> bytes | int | None:
        """Return one element, a text as the bytes that it has; the others aren't unpacked."""
        _, start, validity, offsets, data = self.buffers
        at = start + index
        if validity is not None and not memoryview(validity)[at // 8] >> at % 8 & 1:
            return None
        if offsets is None:
            return int(_INTEGER.unpack_from(data, _INTEGER.size * at)[0])
        first, end = self._span(index, index + 1)
        return bytes(memoryview(data)[first:end])

    def _span(self, first: int, end: int) -> tuple[int, int]:
        """Return where the data of these elements begins and ends."""
        _, start, _, offsets, _ = self.buffers
        assert offsets is not None, "a column of integers"
        begins, ends = (_OFFSET.unpack_from(offsets, _OFFSET.size * (start + each))[0] for each in (first, end))
        return begins, ends

    def __iter__(self) -> Iterator[Any]:
        return iter(self.unpack())

    def __getitem__(self, part: slice) -> PackedColumn:
        start, stop, _ = part.indices(len(self))
        buffers = self.buffers._replace(length=max(0, stop - start), start=self.buffers.start + start)
        return PackedColumn(buffers, lambda: self.unpack()[part])


Column = list[Any] | PackedColumn
"""One element for each record, as objects or packed."""


def as_list(column: Column) -> list[Any]:
    """Return the elements of a column as objects."""
    return column.unpack() if isinstance(column, PackedColumn) else column
