"""The rows of a batch that the compiled part has read: its columns, and which of them are left."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self, overload

from twopc.column_rows import ColumnRows, Place
from twopc.packed_column import Buffers, PackedColumn
from twopc.record import Headers

if TYPE_CHECKING:
    from twopc.kafka.native._batches import Records


@dataclass(frozen=True, slots=True)
class ReadRow:
    """One of the records that were read."""

    records: Records
    index: int

    def topic(self) -> str:
        return self.records.place(self.index)[0]

    def partition(self) -> int:
        return self.records.place(self.index)[1]

    def offset(self) -> int:
        return self.records.place(self.index)[2]

    def key(self) -> bytes | None:
        return self.records.key(self.index)

    def value(self) -> bytes | None:
        return self.records.value(self.index)

    def timestamp(self) -> tuple[int, int]:
        return self.records.timestamp(self.index)

    def headers(self) -> Headers | None:
        """Raise ValueError for a name that is no UTF-8."""
        headers = self.records.headers
        found = None if headers is None else headers[self.index]
        if found is not None and is_torn(found):
            raise ValueError(f"a name of a header is no UTF-8: {[name for name, _ in found]!r}")
        return found


class ReadRows(ColumnRows):
    """Records that were read together, all or some of them."""

    __slots__ = ("_indices", "_records")

    def __init__(self, records: Records, indices: Sequence[int] | None = None) -> None:
        self._records = records
        self._indices = range(len(records)) if indices is None else indices

    def __len__(self) -> int:
        return len(self._indices)

    def __iter__(self) -> Iterator[ReadRow]:
        return iter([ReadRow(self._records, index) for index in self._indices])

    @overload
    def __getitem__(self, index: int) -> ReadRow: ...
    @overload
    def __getitem__(self, index: slice) -> Self: ...
    def __getitem__(self, index: int | slice) -> ReadRow | Self:
        if isinstance(index, slice):
            return type(self)(self._records, self._indices[index])
        return ReadRow(self._records, self._indices[index])

    def keys(self) -> list[Any]:
        return self._records.keys(self._chosen())

    def values(self) -> list[Any]:
        """Return the values, as bytes."""
        return self._records.values(self._chosen())

    def packed_keys(self) -> PackedColumn | None:
        return _packed(self._records.packed_keys(self._chosen()), self.keys)

    def packed_values(self) -> PackedColumn | None:
        return _packed(self._records.packed_values(self._chosen()), self.values)

    def packed_timestamps(self) -> PackedColumn | None:
        return _packed(self._records.packed_times(self._chosen()), self.timestamps)

    def size(self) -> int:
        """Return how many bytes the values have."""
        if self._chosen() is None:
            return self._records.size
        return sum(len(value) for value in self.values() if value is not None)

    def timestamps(self) -> list[int | None]:
        return self._records.times(self._chosen())

    def headers(self) -> list[Headers | None] | None:
        headers = self._records.headers
        if headers is None:
            return [None] * len(self)
        picked: list[Headers | None] = [headers[index] for index in self._indices]
        return None if any(found is not None and is_torn(found) for found in picked) else picked

    def partitions(self) -> list[int]:
        return self._records.partitions(self._chosen())

    def places(self) -> list[Place]:
        return self._records.places(self._chosen())

    def take(self, indices: Sequence[int]) -> Self:
        own = self._chosen()
        return type(self)(self._records, list(indices) if own is None else [own[index] for index in indices])

    def _chosen(self) -> list[int] | None:
        """Return the indices of the records that are left; None for all."""
        if isinstance(self._indices, list):
            return self._indices
        return None if self._indices == range(len(self._records)) else list(self._indices)


def _packed(found: tuple[Any, ...] | None, unpack: Callable[[], list[Any]]) -> PackedColumn | None:
    return None if found is None else PackedColumn(Buffers(*found), unpack)


def is_torn(headers: Sequence[tuple[Any, bytes | None]]) -> bool:
    """Whether the names of a record's headers were left as bytes: one of them is no UTF-8."""
    return any(isinstance(name, bytes) for name, _ in headers)
