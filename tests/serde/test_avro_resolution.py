"""Which schemas can read what another wrote, said before; and what they read, as fastavro reads it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from io import BytesIO
from typing import Any

import pytest
from fastavro import schemaless_reader, schemaless_writer
from fastavro.utils import generate_many

from twopc.serde import Avro
from twopc.serde.avro import read_whole
from twopc.serde.avro_names import inlined
from twopc.serde.avro_resolution import why_unreadable
from twopc.serde.avro_resolving import resolved
from twopc.serde.avro_schema import prepared


def record(*fields: Any, name: str = "R", **more: Any) -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": list(fields), **more}


def field(name: str, kind: Any, **more: Any) -> dict[str, Any]:
    return {"name": name, "type": kind, **more}


ENUM = {"type": "enum", "name": "E", "symbols": ["A", "B"]}
SMALL_ENUM = {**ENUM, "symbols": ["A"]}
LONGS = {"type": "array", "items": "long"}
LIST = record(field("next", ["null", "List"]), field("value", "int"), name="List")

READABLE = [
    ("int", "long"),
    ("long", "double"),
    ("string", "bytes"),
    (record(field("a", "int")), record(field("a", "float"), field("b", "string", default="-"))),
    (record(field("a", "int"), field("b", "int")), record(field("a", "int"))),
    (record(field("old", "int")), record(field("new", "int", aliases=["old"]))),
    (record(field("a", "int"), name="Old"), record(field("a", "int"), name="New", aliases=["Old"])),
    (record(field("a", "int"), name="x.R"), record(field("a", "int"), name="y.R")),
    ("int", ["null", "long"]),
    (["null", "int"], ["null", "long"]),
    ({"type": "array", "items": "int"}, {"type": "array", "items": "long"}),
    ({"type": "map", "values": ENUM}, {"type": "map", "values": {**SMALL_ENUM, "default": "A"}}),
    (LIST, {**LIST, "fields": [LIST["fields"][0], field("value", "long")]}),
]
UNREADABLE = [
    ("long", "int", "the value is long, and must be int"),
    (record(field("a", "int")), record(field("b", "int")), "R.b is missing, and has no default"),
    (record(field("a", "int")), record(field("a", "int"), name="S"), "the value is R, and must be S"),
    (ENUM, SMALL_ENUM, "the value may be 'B', which is unknown"),
    (["null", "string"], "string", "the value is null, and must be string"),
    ("string", ["null", "int"], "the value is string, which no branch of the union to read takes"),
    (record(field("a", LONGS)), record(field("a", {**LONGS, "items": "int"})), r"R.a\[\] is long, and must be int"),
    ({"type": "fixed", "name": "F", "size": 4}, {"type": "fixed", "name": "F", "size": 5}, "has 4 bytes"),
    (LIST, {**LIST, "fields": [LIST["fields"][0], field("value", "string")]}, "List.value is int, and must be string"),
]  # fmt: skip


def plain(schema: Any) -> Any:
    return prepared(json.dumps(schema)).plain


@pytest.mark.parametrize(("writer", "reader"), READABLE)
def test_what_is_readable_is_read(writer: Any, reader: Any) -> None:
    assert why_unreadable(plain(writer), plain(reader)) is None
    for value in small_values(writer):
        data = written(writer, value)
        assert resolve(writer, reader, data) == schemaless_reader(BytesIO(data), plain(writer), plain(reader))


@pytest.mark.parametrize(("writer", "reader", "said"), UNREADABLE)
def test_what_is_not_readable_is_named(writer: Any, reader: Any, said: str) -> None:
    why = why_unreadable(plain(writer), plain(reader))
    assert why is not None
    assert re.search(said, why)


def test_a_type_of_another_schema_stands_where_it_is_first_used() -> None:
    money = record(field("cents", "long"), name="shop.Money")
    bill = record(field("a", "Money"), field("b", {"type": "array", "items": "Money"}), name="shop.Bill")
    fields = plain(inlined(bill, {"shop.Money": money}))["fields"]
    assert fields[0]["type"]["name"] == "shop.Money"
    assert fields[1]["type"]["items"] == "shop.Money"


def test_a_value_keeps_its_branch_in_a_schema_with_more_fields() -> None:
    events = [record(field("id", "long"), name=name) for name in ("Created", "Deleted")]
    more = [
        record(field("id", "long"), field("note", "string", default="-"), name=name) for name in ("Deleted", "Created")
    ]
    writer, reader = record(field("event", events)), record(field("at", "int", default=0), field("event", more))
    read = resolve(writer, reader, b"\2\4")
    assert read == {"at": 0, "event": {"id": 2, "note": "-"}}
    assert Avro.branch_of(read["event"]) == "Deleted"
    assert Avro(reader).serialize(read) == b"\0\0\4\2-"


DATE, DAYS = {"type": "int", "logicalType": "date"}, "int"
MILLIS, MICROS = ({"type": "long", "logicalType": f"timestamp-{unit}"} for unit in ("millis", "micros"))


def decimal(precision: int, scale: int) -> dict[str, Any]:
    return {"type": "bytes", "logicalType": "decimal", "precision": precision, "scale": scale}


@pytest.mark.parametrize(
    ("writer", "reader", "data", "expected"),
    [
        (MILLIS, MICROS, b"\2", datetime(1970, 1, 1, microsecond=1000, tzinfo=UTC)),
        (DATE, DAYS, b"\2", 1),
        (DAYS, DATE, b"\2", date(1970, 1, 2)),
        (decimal(4, 2), decimal(9, 3), b"\2\1", Decimal("0.010")),
        ("string", "bytes", b"\2a", b"a"),
        ("long", ["string", "double"], b"\2", 1.0),
    ],
)
def test_a_value_stands_for_the_same_in_the_type_that_it_is_read_into(
    writer: Any, reader: Any, data: bytes, expected: Any
) -> None:
    assert resolve(record(field("it", writer)), record(field("it", reader)), data) == {"it": expected}


@pytest.mark.parametrize(
    ("writer", "reader", "data", "said"),
    [
        ("long", "double", b"\x82\x80\x80\x80\x80\x80\x80\x20", "R.it is 9007199254740993, which a double would round"),
        (MICROS, MILLIS, b"\2", "R.it is .*, whose microseconds milliseconds would lose"),
        (decimal(9, 3), decimal(4, 2), b"\2\1", "R.it is .*, which has more digits behind the point"),
        (DATE, MILLIS, b"\2", "R.it was written as date, and is timestamp here"),
    ],
)
def test_what_the_type_to_read_would_change_is_refused_by_the_name_of_its_field(
    writer: Any, reader: Any, data: bytes, said: str
) -> None:
    with pytest.raises(ValueError, match=said):
        resolve(record(field("it", writer)), record(field("it", reader)), data)


def test_a_record_within_itself_is_read_into_one_with_more_fields() -> None:
    more = record(
        field("next", ["null", "List"]), field("value", "long"), field("note", "string", default=""), name="List"
    )
    read = resolve(LIST, more, b"\2\0\4\2")
    assert read == {"next": {"next": None, "value": 2, "note": ""}, "value": 1, "note": ""}


def small_values(writer: Any) -> Iterator[Any]:
    """Yield values that no number of a reader rounds."""
    for value in generate_many(plain(writer), 5):
        yield 7 if isinstance(value, int) else value | {"a": 7} if isinstance(value, dict) and "a" in value else value


def written(writer: Any, value: Any) -> bytes:
    buffer = BytesIO()
    schemaless_writer(buffer, plain(writer), value)
    return buffer.getvalue()


def resolve(writer: Any, reader: Any, data: bytes) -> Any:
    types = (prepared(json.dumps(each)).type for each in (writer, reader))
    return read_whole(resolved(*types), data)
