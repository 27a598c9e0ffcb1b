"""Records as they are read, and what the serdes of a source make of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeVar

from twopc.column import Failures, code_column, map_column
from twopc.kafka.topic_serdes import SerdePair, TopicSerdes
from twopc.record import Batch, RecordError, Row, Stage
from twopc.serde import HeaderSerde, Serde

R = TypeVar("R", bound=Row)


def decoded(
    rows: Sequence[R],
    serdes: TopicSerdes,
    key_of: Callable[[R], bytes | None],
    value_of: Callable[[R], bytes | None],
) -> Batch:
    """Return the batch of these rows, of which those that can't be decoded are errors."""
    pair = serdes.common
    if pair is not None:
        return _of_pair(rows, pair, key_of, value_of)
    runs = serdes.runs(row.topic() or "" for row in rows)
    parts = [_of_pair(rows[part.start : part.stop], pair, key_of, value_of) for pair, part in runs]
    errors: list[tuple[int, RecordError]] = []
    before = 0
    for part in parts:
        errors += [(before + at, error) for at, error in part.errors]
        before += len(part)
    good = [row for part in parts for row in part.rows]
    keys = [key for part in parts for key in part.keys]
    return Batch(good, [value for part in parts for value in part.values], keys, errors=errors)


def _of_pair(
    rows: Sequence[R],
    pair: SerdePair,
    key_of: Callable[[R], bytes | None],
    value_of: Callable[[R], bytes | None],
) -> Batch:
    keys: list[Any] | None = None
    bad_keys: Failures = {}
    if not pair.key.is_identity:
        keys, bad_keys = _column(pair.key, list(map(key_of, rows)), rows, "decoding the key")
    values, bad_values = _column(pair.value, list(map(value_of, rows)), rows, "decoding the value")
    batch = Batch(rows, values, keys)
    return _without_bad(batch, bad_keys, bad_values) if bad_keys or bad_values else batch


def _without_bad(batch: Batch, bad_keys: Failures, bad_values: Failures) -> Batch:
    errors: list[tuple[int, RecordError]] = []
    kept: list[int] = []
    for index, row in enumerate(batch.rows):
        if index in bad_keys:
            errors.append((len(kept), RecordError(row, Stage.KEY_CONVERTER, "decoding the key", bad_keys[index])))
        elif index in bad_values:
            cause = bad_values[index]
            errors.append((len(kept), RecordError(row, Stage.VALUE_CONVERTER, "decoding the value", cause)))
        else:
            kept.append(index)
    good = batch.take(kept)
    good.errors = errors
    return good


def _column(serde: Serde, column: list[Any], rows: Sequence[Row], doing: str) -> tuple[list[Any], Failures]:
    if serde.is_identity:
        return column, {}
    if isinstance(serde, HeaderSerde):
        pairs = list(zip(column, Batch(rows, column).headers, strict=True))
        return code_column(partial(map_column, lambda pair: serde.deserialize_with(*pair)), pairs, rows, doing)
    return code_column(serde.deserialize_all, column, rows, doing)
