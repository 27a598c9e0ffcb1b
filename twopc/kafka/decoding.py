"""Records as they are read, and what the serdes of a source make of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from twopc.column import coded
from twopc.record import Batch, Row
from twopc.serde import Serde

R = TypeVar("R", bound=Row)


def decoded(
    rows: Sequence[R],
    key: Serde,
    value: Serde,
    key_of: Callable[[R], bytes | None],
    value_of: Callable[[R], bytes | None],
) -> Batch:
    """Return the batch of these rows; raise UserCodeError, which names the record, for what can't be decoded."""
    keys = None if key.is_identity else _column(key, key_of, rows, "decoding the key")
    return Batch(rows, _column(value, value_of, rows, "decoding the value"), keys)


def _column(serde: Serde, field: Callable[[R], bytes | None], rows: Sequence[R], doing: str) -> list[object]:
    column: list[object] = list(map(field, rows))
    return column if serde.is_identity else coded(serde.deserialize_all, column, rows, doing)
