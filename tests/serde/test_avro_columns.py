"""A column is what its values are one by one, which the types in Python read and write: the same results and errors.

They hold with the compiled codec and without it, when they say the least.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import date
from functools import partial
from itertools import count
from re import sub
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from twopc.column import ColumnError, map_column
from twopc.serde import Avro
from twopc.serde.avro import read_value, write_value
from twopc.serde.avro_schema import prepared

PLAIN: dict[str, st.SearchStrategy[Any]] = {
    "null": st.none(),
    "boolean": st.booleans(),
    "int": st.integers(-(2**31), 2**31 - 1),
    "long": st.integers(-(2**63), 2**63 - 1) | st.integers(-200, 20_000),
    "float": st.floats(width=32),
    "double": st.floats() | st.integers(-5, 5),
    "bytes": st.binary(max_size=300),
    "string": st.text(max_size=100),
}
LOGICAL: list[tuple[dict[str, Any], st.SearchStrategy[Any]]] = [
    ({"type": "int", "logicalType": "date"}, st.dates()),
    ({"type": "long", "logicalType": "timestamp-micros"}, st.datetimes(timezones=st.timezones())),
    ({"type": "string", "logicalType": "uuid"}, st.uuids()),
    ({"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}, st.decimals(-9999, 9999, places=2)),
    ({"type": "string", "logicalType": "nobody's"}, st.text(max_size=9)),
]
ANYTHING = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9) | st.binary(max_size=9)

Typed = tuple[Any, st.SearchStrategy[Any]]
"""A schema, and values of it."""


def type_of(draw: st.DrawFn, names: count[int], depth: int) -> Typed:
    """Draw a type; every named one gets a name of its own."""
    kinds = ["plain", "logical", "enum", "fixed"] + ["record", "optional", "union", "array", "map"] * (depth > 0)
    match draw(st.sampled_from(kinds)):
        case "plain":
            kind = draw(st.sampled_from(sorted(PLAIN)))
            return kind, PLAIN[kind]
        case "logical":
            schema, values = draw(st.sampled_from(LOGICAL))
            return schema, values
        case "enum":
            symbols = [f"S{number}" for number in range(draw(st.integers(1, 3)))]
            return {"type": "enum", "name": f"E{next(names)}", "symbols": symbols}, st.sampled_from(symbols)
        case "fixed":
            return {"type": "fixed", "name": f"F{next(names)}", "size": 4}, st.binary(min_size=4, max_size=4)
        case "optional":
            schema, values = type_of(draw, names, 0)
            branches = ["null", schema] if draw(st.booleans()) else [schema, "null"]
            return ("null", st.none()) if schema == "null" else (branches, st.none() | values)
        case "union":
            return ["string", "long", "null"], PLAIN["string"] | PLAIN["long"] | st.none()
        case "map":
            schema, values = type_of(draw, names, 0)
            return {"type": "map", "values": schema}, st.dictionaries(st.text(max_size=3), values, max_size=3)
        case "array":
            schema, values = type_of(draw, names, 0)
            return {"type": "array", "items": schema}, st.lists(values, max_size=3)
        case _:
            return record_of(draw, names, depth - 1)


def record_of(draw: st.DrawFn, names: count[int], depth: int) -> Typed:
    """Draw a record with up to four fields."""
    name = f"R{next(names)}"
    fields = [type_of(draw, names, depth) for _ in range(draw(st.integers(0, 4)))]
    schema = {
        "type": "record",
        "name": name,
        "fields": [{"name": f"f{n}", "type": f} for n, (f, _) in enumerate(fields)],
    }
    return schema, st.fixed_dictionaries({f"f{number}": values for number, (_, values) in enumerate(fields)})


@st.composite
def columns(draw: st.DrawFn) -> tuple[Avro, list[Any]]:
    """Draw a schema and a column of it, with tombstones."""
    schema, values = record_of(draw, count(), 2)
    return Avro(schema), draw(st.lists(values | st.none(), max_size=6))


def outcome(code: Callable[[list[Any]], list[Any]], column: list[Any]) -> object:
    """Return what comes of a column, in a form that can be compared: nan is no nan."""
    try:
        return repr(code(column))
    except ColumnError as error:
        return error.index, sub("at 0x[0-9a-f]+", "", str(error)), repr(error.results)


def one_by_one(serde: Avro) -> tuple[Callable[[list[Any]], list[Any]], Callable[[list[Any]], list[Any]]]:
    """Return what reads and what writes a column without its being one."""
    schema = prepared(json.dumps(serde.schema, sort_keys=True))
    return partial(map_column, partial(read_value, schema)), partial(map_column, partial(write_value, schema))


@settings(deadline=None, max_examples=200)
@given(columns())
def test_a_column_is_written_and_read_as_its_values_are(drawn: tuple[Avro, list[Any]]) -> None:
    serde, column = drawn
    read, write = one_by_one(serde)
    written = outcome(serde.serialize_all, column)
    assert written == outcome(write, column)
    if isinstance(written, str):
        data = write(column)
        assert outcome(serde.deserialize_all, data) == outcome(read, data)


@settings(deadline=None, max_examples=200)
@given(columns(), st.data())
def test_damaged_bytes_are_refused_as_they_are_one_by_one(drawn: tuple[Avro, list[Any]], data: st.DataObject) -> None:
    serde, column = drawn
    read, write = one_by_one(serde)
    if not isinstance(outcome(write, column), str) or not column:
        return
    encoded = write(column)
    at = data.draw(st.integers(0, len(encoded) - 1))
    if encoded[at] is None:
        return
    whole = encoded[at]
    place = data.draw(st.integers(0, len(whole)))
    other = data.draw(st.binary(max_size=3))
    encoded[at] = whole[:place] + other + whole[place + data.draw(st.integers(0, 3)) :]
    assert outcome(serde.deserialize_all, encoded) == outcome(read, encoded)


SIX = {"n": "long", "i": "int", "f": "float", "d": "double", "s": "string", "o": ["null", "bytes"]}
SERDE = Avro({"type": "record", "name": "Six", "fields": [{"name": name, "type": kind} for name, kind in SIX.items()]})
RIGHT = {"n": 1, "i": 2, "f": 0.5, "d": 1.5, "s": "x", "o": None}


@settings(deadline=None, max_examples=200)
@given(st.dictionaries(st.sampled_from([*SIX, "more"]), ANYTHING, max_size=3), st.sets(st.sampled_from(list(SIX))))
def test_what_does_not_fit_is_refused_as_it_is_one_by_one(changed: dict[str, Any], missing: set[str]) -> None:
    wrong = {name: value for name, value in (RIGHT | changed).items() if name not in missing}
    _, write = one_by_one(SERDE)
    column = [RIGHT, wrong, None, RIGHT]
    assert outcome(SERDE.serialize_all, column) == outcome(write, column)


@pytest.mark.usefixtures("compiled")
def test_right_values_never_go_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("twopc.serde.avro_named.Record.read", None)
    monkeypatch.setattr("twopc.serde.avro_named.Record.write", None)
    column = [RIGHT | {"n": 2**number - 1, "s": "x" * number, "o": b"o" * number} for number in range(64)]
    assert SERDE.deserialize_all(SERDE.serialize_all(column)) == column


@pytest.mark.parametrize("value", [None, 5, "text", [], object()])
def test_what_is_no_record_is_refused_as_it_is_one_by_one(value: Any) -> None:
    _, write = one_by_one(SERDE)
    assert outcome(SERDE.serialize_all, [RIGHT, value]) == outcome(write, [RIGHT, value])


def test_a_byte_that_stands_before_the_border_of_two_values_is_not_taken_over_it() -> None:
    text = Avro({"type": "record", "name": "Text", "fields": [{"name": "text", "type": "string"}]})
    with pytest.raises(ColumnError) as caught:
        text.deserialize_all([b"\x04ab", b"\x04a", b"b\x04ab"])
    assert caught.value.index == 1


def test_a_value_that_goes_back_into_the_one_before_it_is_refused() -> None:
    fields = [{"name": "text", "type": "string"}, {"name": "again", "type": "string"}]
    twice = Avro({"type": "record", "name": "Twice", "fields": fields})
    with pytest.raises(ColumnError) as caught:
        # From a length of -2 the second text would begin in the value before, and end where this one does.
        twice.deserialize_all([b"\0\2\2", b"\3"])
    assert caught.value.index == 1


@pytest.mark.usefixtures("compiled")
@pytest.mark.parametrize(
    ("kind", "values"),
    [
        ("long", [1]),
        (["null", "string"], [None, "a"]),
        ({"type": "enum", "name": "E", "symbols": ["A"]}, ["A"]),
        ({"type": "array", "items": "int"}, [[], [1, 2]]),
        ({"type": "map", "values": {"type": "int", "logicalType": "date"}}, [{}, {"a": date(2026, 1, 1)}]),
        (["long", "string", "null", {"type": "array", "items": "double"}], [1, "a", None, [0.5]]),
    ],
)
def test_records_of_these_types_never_go_one_by_one(
    kind: Any, values: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    serde = Avro({"type": "record", "name": "R", "fields": [{"name": "f", "type": kind}]})
    monkeypatch.setattr("twopc.serde.avro_named.Record.read", None)
    monkeypatch.setattr("twopc.serde.avro_named.Record.write", None)
    column = [{"f": value} for value in values]
    assert serde.deserialize_all(serde.serialize_all(column)) == column


def test_a_record_within_itself_goes_one_by_one() -> None:
    schema = prepared(json.dumps({"type": "record", "name": "R", "fields": [{"name": "f", "type": ["null", "R"]}]}))
    assert schema.codec is None


@pytest.mark.usefixtures("compiled")
def test_a_type_that_is_named_twice_goes_by_columns() -> None:
    inner = {"type": "record", "name": "In", "fields": [{"name": "n", "type": "long"}]}
    fields = [{"name": "a", "type": inner}, {"name": "b", "type": "In"}]
    serde = Avro({"type": "record", "name": "Out", "fields": fields})
    column = [{"a": {"n": 1}, "b": {"n": -2}}] * 2
    assert serde.deserialize_all(serde.serialize_all(column)) == column
    assert prepared(json.dumps(serde.schema, sort_keys=True)).codec is not None
