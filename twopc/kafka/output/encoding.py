"""The encoding of a batch by the serdes of a sink."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

from twopc.column import Failures, code_column, coded, map_column
from twopc.kafka.topic_serdes import SerdePair
from twopc.packed_column import Column, as_list
from twopc.record import Batch, ErrorStage, Headers, RecordError, Row
from twopc.serde import HeaderSerde, Serde

Encode = Callable[[Serde, Column, Batch, str], Column]
"""Encodes a column of a batch by a serde that is not in the headers; the text says what for."""


Code = Callable[[Callable[[list[Any]], list[Any]], list[Any], Sequence[Row], str], list[Any]]
"""Lets a column method encode a column of these rows; the text says what for."""


class EncodedColumns(NamedTuple):
    """A batch as it is written; a column is packed if it was, and nobody has to encode it."""

    keys: Column
    values: Column
    headers: list[Headers | None]


def serialized(serde: Serde, column: Column, batch: Batch, doing: str, code: Code = coded) -> Column:
    """Return what goes to librdkafka for a column of the batch; `code` says what becomes of what can't be encoded."""
    return column if serde.is_identity else code(serde.serialize_all, as_list(column), batch.rows, doing)


class Refusals:
    """Encodes what can be encoded, with None in the place of what can't; `errors` are those records, by their index."""

    def __init__(self) -> None:
        self.errors: dict[int, RecordError] = {}

    def code(
        self, method: Callable[[list[Any]], list[Any]], column: list[Any], rows: Sequence[Row], doing: str
    ) -> list[Any]:
        """Let a column method encode, as `coded` does."""
        results, failures = code_column(method, column, rows, doing)
        self.add(failures, rows, doing)
        return results

    def add(self, failures: Failures, rows: Sequence[Row], doing: str) -> None:
        """Note what is wrong with more records; of one that has several faults, the first counts."""
        for index, cause in failures.items():
            self.errors.setdefault(index, RecordError(rows[index], ErrorStage.KAFKA_PRODUCE, doing, cause))


def encoded(
    pair: SerdePair, batch: Batch, where: str = "", encode: Encode = serialized, code: Code = coded
) -> EncodedColumns:
    """Return the columns of a batch, keys before values; raise UserCodeError, which says `where` they would go."""
    key, value = f"encoding a key{where}", f"encoding a value{where}"
    key_column = batch.key_column if pair.key.is_identity else batch.keys
    value_column = batch.value_column if pair.value.is_identity else batch.values
    keys, headers = _column(pair.key, key_column, batch.headers, batch, key, encode, code)
    values, headers = _column(pair.value, value_column, headers, batch, value, encode, code)
    return EncodedColumns(keys, values, headers)


def _column(
    serde: Serde,
    column: Column,
    headers: list[Headers | None],
    batch: Batch,
    doing: str,
    encode: Encode,
    code: Code,
) -> tuple[Column, list[Headers | None]]:
    if not isinstance(serde, HeaderSerde):
        return encode(serde, column, batch, doing), headers
    pairs = list(zip(column, headers, strict=True))
    made = code(partial(map_column, lambda pair: serde.serialize_with(*pair)), pairs, batch.rows, doing)
    made = [each or (None, None) for each in made]
    return [data for data, _ in made], [left for _, left in made]
