"""Rows that are columns: a source hands over a whole batch, and a row is made only for who asks for one.

The functions ask rows of either kind for a column, and go over them one by one only where they are objects.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self, overload

if TYPE_CHECKING:
    from twopc.packed_column import PackedColumn
    from twopc.record import Headers, Row

NO_TIMESTAMP = -1
"""The timestamp that Kafka stores of a record that has none."""

Place = tuple[str, int, int]
"""The place that a row came from: its input, the number of its part there, and its number in that."""


class ColumnRows(Sequence["Row"]):
    """The rows of one batch, in their order. Each column is a list of the caller's own, as long as there are rows."""

    @overload
    def __getitem__(self, index: int) -> Row: ...
    @overload
    def __getitem__(self, index: slice) -> Self: ...
    @abstractmethod
    def __getitem__(self, index: int | slice) -> Row | Self: ...

    @abstractmethod
    def values(self) -> list[Any]: ...

    @abstractmethod
    def keys(self) -> list[Any]: ...

    @abstractmethod
    def packed_values(self) -> PackedColumn | None:
        """Return None where there is no such column."""

    @abstractmethod
    def packed_keys(self) -> PackedColumn | None: ...

    @abstractmethod
    def packed_timestamps(self) -> PackedColumn | None:
        """Return None, too, where one is none or 0: librdkafka can't write that."""

    @abstractmethod
    def timestamps(self) -> list[int | None]:
        """Return Unix milliseconds; None where the input has none."""

    @abstractmethod
    def headers(self) -> list[Headers | None] | None:
        """Return None if those of a row can't be read: that row says so when it is asked."""

    @abstractmethod
    def partitions(self) -> list[int]: ...

    @abstractmethod
    def places(self) -> list[Place]: ...

    @abstractmethod
    def take(self, indices: Sequence[int]) -> Self:
        """Return these rows, in this order; an index may occur more than once."""


def values_of(rows: Sequence[Row]) -> list[Any]:
    return rows.values() if isinstance(rows, ColumnRows) else [row.value() for row in rows]


def keys_of(rows: Sequence[Row]) -> list[Any]:
    return rows.keys() if isinstance(rows, ColumnRows) else [row.key() for row in rows]


def packed_values_of(rows: Sequence[Row]) -> PackedColumn | None:
    return rows.packed_values() if isinstance(rows, ColumnRows) else None


def packed_keys_of(rows: Sequence[Row]) -> PackedColumn | None:
    return rows.packed_keys() if isinstance(rows, ColumnRows) else None


def packed_timestamps_of(rows: Sequence[Row]) -> PackedColumn | None:
    return rows.packed_timestamps() if isinstance(rows, ColumnRows) else None


def timestamps_of(rows: Sequence[Row]) -> list[int | None]:
    """Return Unix milliseconds; None where the input has none."""
    if isinstance(rows, ColumnRows):
        return rows.timestamps()
    return [stamp if kind and stamp != NO_TIMESTAMP else None for kind, stamp in (row.timestamp() for row in rows)]


def headers_of(rows: Sequence[Row]) -> list[Headers | None] | None:
    """Return None where each row must be asked for its own."""
    return rows.headers() if isinstance(rows, ColumnRows) else None


def partitions_of(rows: Sequence[Row]) -> list[int]:
    return rows.partitions() if isinstance(rows, ColumnRows) else [row.partition() or 0 for row in rows]


def places_of(rows: Sequence[Row]) -> list[Place]:
    if isinstance(rows, ColumnRows):
        return rows.places()
    return [(row.topic() or "", _number(row.partition()), _number(row.offset())) for row in rows]


def take(rows: Sequence[Row], indices: Sequence[int]) -> Sequence[Row]:
    """Return these rows, in this order; an index may occur more than once."""
    return rows.take(indices) if isinstance(rows, ColumnRows) else [rows[index] for index in indices]


def _number(known: int | None) -> int:
    return -1 if known is None else known
