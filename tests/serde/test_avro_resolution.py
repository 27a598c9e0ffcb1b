"""Which schemas can read what another wrote: said before, as fastavro finds it out with the values."""

from __future__ import annotations

import json
import re
from io import BytesIO
from typing import Any

import pytest
from fastavro import schemaless_reader, schemaless_writer
from fastavro.utils import generate_many

from twopc.serde.avro_names import inlined
from twopc.serde.avro_resolution import why_unreadable
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
    for value in generate_many(plain(writer), 5):
        resolve(writer, reader, value)


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


def resolve(writer: Any, reader: Any, value: Any) -> Any:
    buffer = BytesIO()
    schemaless_writer(buffer, plain(writer), value)
    buffer.seek(0)
    return schemaless_reader(buffer, plain(writer), plain(reader))
