"""Records as they are read, and what the serdes of a source make of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeVar

from twopc.column import coded, map_column
from twopc.kafka.topic_serdes import SerdePair, TopicSerdes
from twopc.record import Batch, Row
from twopc.serde import HeaderSerde, Serde

R = TypeVar("R", bound=Row)


def decoded(
    rows: Sequence[R],
    serdes: TopicSerdes,
    key_of: Callable[[R], bytes | None],
    value_of: Callable[[R], bytes | None],
) -> Batch:
    """Return the batch of these rows; raise UserCodeError, which names the record, for what can't be decoded."""
    pair = serdes.common
    if pair is not None:
        return _of_pair(rows, pair, key_of, value_of)
    runs = serdes.runs(row.topic() or "" for row in rows)
    parts = [_of_pair(rows[part.start : part.stop], pair, key_of, value_of) for pair, part in runs]
    keys = [key for part in parts for key in part.keys]
    return Batch(rows, [value for part in parts for value in part.values], keys)


def _of_pair(
    rows: Sequence[R],
    pair: SerdePair,
    key_of: Callable[[R], bytes | None],
    value_of: Callable[[R], bytes | None],
) -> Batch:
    keys = None if pair.key.is_identity else _column(pair.key, list(map(key_of, rows)), rows, "decoding the key")
    return Batch(rows, _column(pair.value, list(map(value_of, rows)), rows, "decoding the value"), keys)


def _column(serde: Serde, column: list[Any], rows: Sequence[Row], doing: str) -> list[Any]:
    if serde.is_identity:
        return column
    if isinstance(serde, HeaderSerde):
        pairs = list(zip(column, Batch(rows, column).headers, strict=True))
        return coded(partial(map_column, lambda pair: serde.deserialize_with(*pair)), pairs, rows, doing)
    return coded(serde.deserialize_all, column, rows, doing)
