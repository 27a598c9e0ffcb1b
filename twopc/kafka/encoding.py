"""What the serdes of a sink make of a batch."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from twopc.column import coded, map_column
from twopc.kafka.topic_serdes import SerdePair
from twopc.record import Batch, Headers
from twopc.serde import HeaderSerde, Serde

Encode = Callable[[Serde, list[Any], Batch, str], list[Any]]
"""Encodes a column of a batch by a serde that is not in the headers; the text says what for."""


class EncodedColumns(NamedTuple):
    """A batch as it is written."""

    keys: list[Any]
    values: list[Any]
    headers: list[Headers | None]


def serialized(serde: Serde, column: list[Any], batch: Batch, doing: str) -> list[Any]:
    """Return what goes to librdkafka for a column of the batch; raise UserCodeError for what can't be encoded."""
    return column if serde.is_identity else coded(serde.serialize_all, column, batch.rows, doing)


def encoded(pair: SerdePair, batch: Batch, where: str = "", encode: Encode = serialized) -> EncodedColumns:
    """Return the columns of a batch, keys before values; raise UserCodeError, which says `where` they would go."""
    keys, headers = _column(pair.key, batch.keys, batch.headers, batch, f"encoding a key{where}", encode)
    values, headers = _column(pair.value, batch.values, headers, batch, f"encoding a value{where}", encode)
    return EncodedColumns(keys, values, headers)


def _column(
    serde: Serde, column: list[Any], headers: list[Headers | None], batch: Batch, doing: str, encode: Encode
) -> tuple[list[Any], list[Headers | None]]:
    if not isinstance(serde, HeaderSerde):
        return encode(serde, column, batch, doing), headers
    pairs = list(zip(column, headers, strict=True))
    made = coded(partial(map_column, lambda pair: serde.serialize_with(*pair)), pairs, batch.rows, doing)
    return [data for data, _ in made], [left for _, left in made]
