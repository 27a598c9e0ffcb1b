"""Which columns of a query count, and what is said of others; in the session that all tests here share."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from twopc.errors import ConfigurationError
from twopc.spark.streaming.rows import as_records

pytestmark = pytest.mark.spark


def records(session: SparkSession, query: str, topic: str | None = "out") -> dict[str, object]:
    [row] = as_records(session.sql(f"SELECT {query}"), topic).collect()
    return {name: row[name] for name in row.asDict()}


def test_each_column_comes_as_the_tasks_read_it(session: SparkSession) -> None:
    headers = "array(named_struct('key', 'h', 'value', CAST('1' AS BINARY))) AS headers"
    when = "timestamp_millis(1234) AS timestamp"
    found = records(session, f"'t' AS topic, 'v' AS value, CAST('k' AS BINARY) AS key, {headers}, {when}", None)
    assert (found["value"], found["key"]) == (bytearray(b"v"), bytearray(b"k"))
    assert (found["topic"], found["timestamp"]) == ("t", 1234)
    assert [(each["key"], each["value"]) for each in found["headers"]] == [("h", bytearray(b"1"))]  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("query", "topic", "said"),
    [
        ("1 AS value", "out", "the column 'value' of int: a value is string or binary"),
        ("'v' AS value, 1 AS key", "out", "the column 'key' of int"),
        ("'v' AS value, 1 AS count", "out", "can't write the column 'count'"),
        ("'k' AS key", "out", "needs a column 'value'"),
        ("'v' AS value", None, "needs a topic, or rows with a column 'topic'"),
        ("'v' AS value, 't' AS topic", "out", "has a topic, and the rows have a column 'topic'"),
        ("'v' AS value, map('a', 'b') AS headers", "out", "the column 'headers' of map<string,string>"),
        ("'v' AS value, current_date() AS timestamp", "out", "the column 'timestamp' of date"),
    ],
)
def test_what_a_record_has_not_is_refused_by_name(
    session: SparkSession, query: str, topic: str | None, said: str
) -> None:
    with pytest.raises(ConfigurationError, match=said):
        records(session, query, topic)
