"""A query's rows as records of Kafka: which columns count, and how an Arrow batch becomes a batch of records.

The columns are those of Spark's own Kafka sink: `value`, and where there are any `key`, `topic` and `headers`; and
`timestamp`, without which a record has the time at which it was written.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  everybody's name for it
from pyspark.sql.types import ArrayType, BinaryType, DataType, LongType, StringType, StructType, TimestampType

from twopc.column import locate
from twopc.errors import ConfigurationError, UserCodeError
from twopc.packed_column import PackedColumn, as_list
from twopc.record import Batch, Headers, Row
from twopc.stand_ins import PlaceOnly

KEY, VALUE, TOPIC, HEADERS, TIMESTAMP = "key", "value", "topic", "headers", "timestamp"
COLUMNS = (KEY, VALUE, TOPIC, HEADERS, TIMESTAMP)


def as_records(frame: DataFrame, topic: str | None) -> DataFrame:
    """Return the columns that a record has, each in the form that the tasks read; raise ConfigurationError for others.

    `topic` is where all rows go; None where each says it itself.
    """
    types = record_columns(frame.schema, topic)
    return frame.select(*(_column(name, types[name]).alias(name) for name in types))


def record_columns(schema: StructType, topic: str | None) -> dict[str, DataType]:
    """Return the columns that a record has and their types; raise ConfigurationError for one that can't be written."""
    types = {field.name: field.dataType for field in schema.fields}
    strange = sorted(set(types) - set(COLUMNS))
    if strange:
        raise ConfigurationError(
            f"the sink can't write the column {strange[0]!r}: a record has the columns {', '.join(COLUMNS)}; put the "
            "others into `value`, e.g. by to_json(struct('*')) AS value"
        )
    if VALUE not in types:
        raise ConfigurationError("the sink needs a column 'value': name one, e.g. by to_json(struct('*')) AS value")
    if (topic is None) == (TOPIC not in types):
        raise ConfigurationError(
            "the sink has a topic, and the rows have a column 'topic': leave one of them out"
            if topic
            else "the sink needs a topic, or rows with a column 'topic'"
        )
    for name, kind in types.items():
        if not _is_possible(name, kind):
            raise ConfigurationError(
                f"the sink can't write the column {name!r} of {kind.simpleString()}: {_NEEDS[name]}"
            )
    return {name: types[name] for name in COLUMNS if name in types}


def _is_possible(name: str, kind: DataType) -> bool:
    match name, kind:
        case (("key" | "value"), (StringType() | BinaryType())):
            return True
        case ("topic", StringType()) | ("timestamp", (TimestampType() | LongType())):
            return True
        case "headers", ArrayType(elementType=StructType() as header):
            return header.names == ["key", "value"]
        case _:
            return False


def _column(name: str, kind: DataType) -> Column:
    column = F.col(name)
    match name, kind:
        case (("key" | "value"), _):
            return column.cast("binary")
        case "timestamp", TimestampType():
            return F.unix_millis(column)
        case "headers", _:
            return column.cast("array<struct<key:string,value:binary>>")
        case _:
            return column


_NEEDS = {
    KEY: "a key is string or binary; make it one by CAST, to_json or to_avro",
    VALUE: "a value is string or binary; make it one by CAST, to_json or to_avro",
    TOPIC: "it must be a string",
    TIMESTAMP: "it must be a timestamp, or a bigint of Unix milliseconds",
    HEADERS: "they must be array<struct<key:string,value:binary>>",
}


@dataclass(frozen=True, slots=True)
class BatchRow(PlaceOnly):
    """The address of a row in an error: its batch, its partition of Spark's, and its number there."""

    batch: int
    number: int
    index: int

    def topic(self) -> str:
        return f"of batch {self.batch}"

    def partition(self) -> int:
        return self.number

    def offset(self) -> int:
        return self.index


class BatchRows(Sequence[Row]):
    """The rows of a part of a batch, each made when somebody asks for it."""

    def __init__(self, batch: int, number: int, indices: range) -> None:
        self._batch = batch
        self._number = number
        self._indices = indices

    def __len__(self) -> int:
        return len(self._indices)

    def __getitem__(self, index: Any) -> Any:
        found = self._indices[index]
        if isinstance(found, range):
            return BatchRows(self._batch, self._number, found)
        return BatchRow(self._batch, self._number, found)


def records_of(
    columns: Mapping[str, list[Any] | PackedColumn], topic: str | None, rows: Sequence[Row]
) -> Iterator[tuple[str, Batch]]:
    """Yield the topics of these columns, each with its records in order."""
    count = len(rows)
    now = int(time.time() * 1000)
    batch = Batch(
        rows,
        columns[VALUE],
        columns.get(KEY) or [None] * count,
        as_list(columns.get(TIMESTAMP) or [now] * count),
        [_headers(each) for each in columns[HEADERS]] if HEADERS in columns else [None] * count,
    )
    if topic is not None:
        yield topic, batch
        return
    indices: dict[str, list[int]] = {}
    for index, name in enumerate(columns[TOPIC]):
        if not name:
            raise UserCodeError(f"record {locate(rows[index])} says no topic: its column 'topic' is {name!r}")
        indices.setdefault(name, []).append(index)
    for name, chosen in indices.items():
        yield name, batch.take(chosen)


def _headers(found: Any) -> Headers | None:
    return None if found is None else [(each["key"], each["value"]) for each in found]
