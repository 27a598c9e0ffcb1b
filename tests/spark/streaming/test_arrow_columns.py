"""Columns as Spark gives them to a format, in the form of a record; no JVM."""

from __future__ import annotations

from datetime import UTC, datetime

import pyarrow as pa

from twopc.spark.streaming.arrow_columns import as_record_batch, size_of

MOMENT = datetime(2026, 1, 2, 3, 4, 5, 678_901, UTC)


def test_texts_become_bytes_and_nothing_stays_nothing() -> None:
    given = pa.RecordBatch.from_pydict({"value": ["ä", None], "key": [b"k", b""]})
    assert as_record_batch(given).to_pydict() == {"value": ["ä".encode(), None], "key": [b"k", b""]}


def test_a_timestamp_becomes_unix_milliseconds() -> None:
    stamps = pa.array([MOMENT, None], pa.timestamp("us", "UTC"))
    made = as_record_batch(pa.RecordBatch.from_pydict({"value": ["a", "b"], "timestamp": stamps}))
    assert made.to_pydict()["timestamp"] == [int(MOMENT.timestamp() * 1000), None]


def test_headers_keep_their_order_and_their_bytes() -> None:
    given = pa.RecordBatch.from_pydict(
        {"value": ["a"], "headers": [[{"key": "x", "value": "1"}, {"key": "x", "value": "2"}]]}
    )
    assert as_record_batch(given).to_pydict()["headers"] == [[{"key": "x", "value": b"1"}, {"key": "x", "value": b"2"}]]


def test_the_size_is_that_of_keys_and_values() -> None:
    given = pa.RecordBatch.from_pydict({"value": [b"abc", None], "key": [b"k", b""], "topic": ["long name", "t"]})
    assert size_of(given) == len("abc") + len("k")


def test_a_part_without_rows_has_no_size() -> None:
    assert size_of(pa.RecordBatch.from_arrays([pa.array([], pa.binary())], ["value"])) == 0
