"""Records as they are read, and what the serdes of a source make of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from twopc.column import Failures, code_column, map_column
from twopc.column_rows import ColumnRows, places_of
from twopc.kafka.topic_serdes import SerdePair, TopicSerdes
from twopc.record import Batch, ErrorStage, Headers, RecordError, Row
from twopc.serde import HeaderSerde, Serde

ColumnOf = Callable[[Any], list[Any]]
"""Returns a column of rows, as bytes: a list of the caller's own."""

Error = tuple[int, RecordError]
"""A record of a batch that went wrong, and how many rows of the batch stand before it."""


def decoded(
    rows: Sequence[Row],
    serdes: TopicSerdes,
    keys_of: ColumnOf,
    values_of: ColumnOf,
) -> Batch:
    """Return the batch of these rows, of which those that can't be decoded are errors."""
    pair = serdes.common
    if pair is not None:
        return _of_pair(rows, pair, keys_of, values_of)
    runs = serdes.runs(topic for topic, _, _ in places_of(rows))
    parts = [_of_pair(rows[part.start : part.stop], pair, keys_of, values_of) for pair, part in runs]
    errors: list[Error] = []
    before = 0
    for part in parts:
        errors += [(before + at, error) for at, error in part.errors]
        before += len(part)
    good = [row for part in parts for row in part.rows] if errors else rows
    keys = [key for part in parts for key in part.keys]
    return Batch(good, [value for part in parts for value in part.values], keys, errors=errors)


def _of_pair(
    rows: Sequence[Row],
    pair: SerdePair,
    keys_of: ColumnOf,
    values_of: ColumnOf,
) -> Batch:
    if not any(isinstance(serde, HeaderSerde) for serde in pair):
        return _with_headers(rows, [], pair, keys_of, values_of)
    read = Batch(rows, list(rows)).with_headers_read()
    batch = _with_headers(read.rows, read.headers, pair, keys_of, values_of)
    batch.errors = _in_order(read.errors, batch.errors)
    return batch


def _with_headers(
    rows: Sequence[Row], headers: list[Headers | None], pair: SerdePair, keys_of: ColumnOf, values_of: ColumnOf
) -> Batch:
    """Return the batch of rows with these headers, which only a serde that is in the headers looks at."""
    keys: list[Any] | None = None
    bad_keys: Failures = {}
    if not pair.key.is_identity:
        keys, bad_keys = _column(pair.key, keys_of(rows), headers, rows, "decoding the key")
    values: list[Any] | None = None
    bad_values: Failures = {}
    if not (pair.value.is_identity and isinstance(rows, ColumnRows)):
        values, bad_values = _column(pair.value, values_of(rows), headers, rows, "decoding the value")
    batch = Batch(rows, values, keys)
    return _without_bad(batch, bad_keys, bad_values) if bad_keys or bad_values else batch


def _in_order(torn: Sequence[Error], undecoded: Sequence[Error]) -> list[Error]:
    """Return the errors of a batch in the order of their rows, each with how many rows of the batch stand before it.

    The `torn` say how many stand before them with those that could not be decoded, of which the n-th has n of its like
    before it.
    """
    bad = [at + number for number, (at, _) in enumerate(undecoded)]
    every = [(at, 0, at - sum(each < at for each in bad), error) for at, error in torn]
    every += [(index, 1, at, error) for index, (at, error) in zip(bad, undecoded, strict=True)]
    return [(at, error) for _, _, at, error in sorted(every, key=lambda each: each[:2])]


def _without_bad(batch: Batch, bad_keys: Failures, bad_values: Failures) -> Batch:
    errors: list[Error] = []
    kept: list[int] = []
    for index, row in enumerate(batch.rows):
        if index in bad_keys:
            errors.append((len(kept), RecordError(row, ErrorStage.KEY_CONVERTER, "decoding the key", bad_keys[index])))
        elif index in bad_values:
            cause = bad_values[index]
            errors.append((len(kept), RecordError(row, ErrorStage.VALUE_CONVERTER, "decoding the value", cause)))
        else:
            kept.append(index)
    good = batch.take(kept)
    good.errors = errors
    return good


def _column(
    serde: Serde, column: list[Any], headers: list[Headers | None], rows: Sequence[Row], doing: str
) -> tuple[list[Any], Failures]:
    if serde.is_identity:
        return column, {}
    if isinstance(serde, HeaderSerde):
        pairs = list(zip(column, headers, strict=True))
        return code_column(partial(map_column, lambda pair: serde.deserialize_with(*pair)), pairs, rows, doing)
    return code_column(serde.deserialize_all, column, rows, doing)
