"""The compiled codec by itself: it stops at what it does not take, and holds on to nothing."""

from __future__ import annotations

import json
import sys
import weakref
from collections.abc import Callable
from typing import Any

import pytest

from tests.compiled_parts import compiled_part
from twopc.compiled import AVRO
from twopc.serde import Avro
from twopc.serde.avro_codec import codec_of
from twopc.serde.avro_schema import prepared
from twopc.variables import NATIVE

_avro: Any = compiled_part(AVRO)

LONG = ("long", (), 0, ())
STRING = ("string", (), 0, ())
PAIR = ("record", (LONG, STRING), 0, ("n", "s"))
EITHER = ("union", (LONG, STRING), 0, ({int: 0, str: 1}, (None, None)))
LONGS = ("array", (LONG,), 0, ())
BY_TEXT = ("map", (LONG,), 0, ())


def fields(kinds: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of a record with these fields."""
    return {"type": "record", "name": "R", "fields": [{"name": name, "type": kind} for name, kind in kinds.items()]}


def test_it_goes_from_the_start_to_the_first_element_that_it_does_not_take() -> None:
    codec = _avro.Codec(PAIR)
    column = [b"\2\2a", b"\4\2b", None, b"\4", b"\4\2b"]
    assert codec.read(column, 1, b"") == [{"n": 2, "s": "b"}, None]
    assert codec.read(column, 3, b"") == codec.read(column, 9, b"") == []
    assert codec.write([{"n": 1, "s": "a"}, None, {"n": True, "s": "a"}], 0, b"") == [b"\2\2a", None]


def test_a_head_stands_before_each_value() -> None:
    codec = _avro.Codec(PAIR)
    written = codec.write([{"n": 1, "s": "a"}, None], 0, b"head")
    assert written == [b"head\2\2a", None]
    assert codec.read([*written, b"heat\2\2a"], 0, b"head") == [{"n": 1, "s": "a"}, None]
    assert codec.read([b"hea"], 0, b"head") == []


@pytest.mark.parametrize(
    ("plan", "data"),
    [
        (LONG, b""),
        (LONG, b"\x80"),
        (LONG, b"\x80" * 9 + b"\2"),
        (LONG, b"\x80" * 10 + b"\0"),
        (("int", (), 0, ()), b"\x80\x80\x80\x80\x20"),
        (("boolean", (), 0, ()), b"\2"),
        (("float", (), 0, ()), b"\0\0\0"),
        (("double", (), 0, ()), b"\0" * 9),
        (STRING, b"\4a"),
        (STRING, b"\1"),
        (STRING, b"\2\xff"),
        (STRING, b"\xfe" + b"\xff" * 8 + b"\1a"),
        (("fixed", (), 4, ()), b"\0\0\0"),
        (("enum", (), 0, (("A",), {"A": 0})), b"\2"),
        (("enum", (), 0, (("A",), {"A": 0})), b"\1"),
        (EITHER, b"\4"),
        (EITHER, b"\1"),
        (("float", (), 0, ()), b"\1\0\x80\x7f"),
        (LONGS, b"\2\2"),
        (LONGS, b"\1\2\2\0"),
        (("array", (("null", (), 0, ()),), 0, ()), b"\x80\x80\x80\x80\x80\x10\0"),
        (BY_TEXT, b"\4\2a\2\2a\4\0"),
        (BY_TEXT, b"\2\2\xff\2\0"),
    ],
)
def test_bytes_that_are_no_value_are_not_taken(plan: Any, data: bytes) -> None:
    assert _avro.Codec(plan).read([data], 0, b"") == []


@pytest.mark.parametrize(
    ("plan", "value"),
    [
        (LONG, 2**63),
        (LONG, True),
        (LONG, 1.0),
        (("int", (), 0, ()), -(2**31) - 1),
        (("float", (), 0, ()), 1e39),
        (("double", (), 0, ()), 10**400),
        (STRING, "\ud800"),
        (STRING, b"a"),
        (("fixed", (), 2, ()), b"abc"),
        (("enum", (), 0, (("A",), {"A": 0})), "B"),
        (("enum", (), 0, (("A",), {"A": 0})), []),
        (EITHER, 0.5),
        (LONGS, (1,)),
        (LONGS, "1"),
        (LONGS, [1, "1"]),
        (BY_TEXT, {1: 1}),
        (BY_TEXT, {"a": 1.0}),
        (("double", (), 0, ()), 1),
        (PAIR, {"n": 1}),
        (PAIR, {"n": 1, "s": "a", "more": 1}),
        (PAIR, {"n": 1, "t": "a"}),
    ],
)
def test_values_of_another_type_are_not_taken(plan: Any, value: Any) -> None:
    assert _avro.Codec(plan).write([value], 0, b"") == []


@pytest.mark.parametrize(
    "plan",
    [
        None,
        (),
        ("map", (), 0, ()),
        ("array", (LONG, LONG), 0, ()),
        ("union", (LONG,), 0, ()),
        ("union", (LONG,), 0, ({int: 0}, ())),
        ("union", (LONG,), 0, ([int], (None,))),
        ("long", [], 0, ()),
        ("fixed", (), -1, ()),
        ("enum", (), 0, ()),
        ("enum", (), 0, (["A"], {})),
        ("record", (LONG,), 0, ()),
        ("record", (None,), 0, ("n",)),
        ("logical", (LONG,), 0, (None,)),
        ("logical", (), 0, (None, None)),
    ],
)
def test_what_is_no_plan_is_refused(plan: Any) -> None:
    with pytest.raises((ValueError, TypeError)):
        _avro.Codec(plan)


def test_a_plan_that_unfolds_without_measure_is_refused_and_its_schema_goes_one_by_one() -> None:
    schema: Any = {"type": "record", "name": "R0", "fields": [{"name": "n", "type": "long"}]}
    for number in range(1, 40):
        both = [{"name": "a", "type": schema}, {"name": "b", "type": f"R{number - 1}"}]
        schema = {"type": "record", "name": f"R{number}", "fields": both}
    assert codec_of(prepared(json.dumps(schema)).type) is None


class Held:
    """An object that somebody may still have."""


@pytest.mark.parametrize("fails", [False, True])
def test_nothing_of_a_call_is_held_on_to(fails: bool) -> None:
    alive: list[weakref.ref[Held]] = []

    def change(*_: Any) -> Any:
        made = Held()
        alive.append(weakref.ref(made))
        if fails:
            raise ValueError(made)
        return made

    text, name, key = "text" * 9, "a name that nobody else has", "a key that nobody else has"
    before = [sys.getrefcount(each) for each in (text, name, key)]
    changed = ("logical", (STRING,), 0, (change, change))
    marked = ("union", (changed,), 0, ({str: 0}, (change,)))
    codec = _avro.Codec(("record", (("array", (("map", (marked,), 0, ()),), 0, ()),), 0, (name,)))
    assert codec.write([{name: [{key: text}]}], 0, b"") == []
    assert len(codec.read([b"\2\2\2k\0\2a\0\0"], 0, b"")) == (not fails)
    del codec
    assert [each() for each in alive] == [None] * (2 if fails else 3)
    assert [sys.getrefcount(each) for each in (text, name, key)] == before


@pytest.mark.parametrize("raised", [KeyboardInterrupt, SystemExit])
def test_what_ends_the_program_goes_through(raised: type[BaseException]) -> None:
    def change(*_: Any) -> Any:
        raise raised

    codec = _avro.Codec(("logical", (LONG,), 0, (change, change)))
    with pytest.raises(raised):
        codec.read([b"\2"], 0, b"")
    with pytest.raises(raised):
        codec.write([1], 0, b"")


def test_a_column_and_a_record_may_become_shorter_under_it() -> None:
    column: list[Any] = []
    record: dict[str, Any] = {"n": 1, "s": "a"}

    def change(value: Any, *_: Any) -> Any:
        column.clear()
        record.clear()
        return value

    codec = _avro.Codec(("record", (("logical", (LONG,), 0, (change, change)), STRING), 0, ("n", "s")))
    column += [record, record]
    assert codec.write(column, 0, b"") == []
    column += [b"\2\2a", b"\2\2a"]
    assert codec.read(column, 0, b"") == [{"n": 1, "s": "a"}]


@pytest.mark.parametrize("kind", ["array", "map"])
def test_what_holds_elements_may_become_shorter_under_it(kind: str) -> None:
    held: Any = [1, 2] if kind == "array" else {"a": 1, "b": 2}

    def change(value: Any) -> Any:
        held.clear()
        return value

    codec = _avro.Codec((kind, (("logical", (LONG,), 0, (change, change)),), 0, ()))
    assert codec.write([held], 0, b"") == []


@pytest.mark.parametrize(
    "call",
    [
        lambda codec: codec.read((b"",), 0, b""),
        lambda codec: codec.read([], -1, b""),
        lambda codec: codec.write([], 0, "head"),
        lambda codec: codec.write([]),
    ],
)
def test_what_is_of_another_type_is_refused(call: Callable[[Any], Any]) -> None:
    with pytest.raises((TypeError, ValueError)):
        call(_avro.Codec(LONG))


def test_without_it_all_goes_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(NATIVE, "0")
    prepared.cache_clear()
    try:
        serde = Avro(fields({"n": "long", "s": ["null", "string"]}))
        column = [{"n": 1, "s": None}, None, {"n": -1, "s": "a"}]
        assert prepared(json.dumps(serde.schema, sort_keys=True)).codec is None
        assert serde.deserialize_all(serde.serialize_all(column)) == column
    finally:
        prepared.cache_clear()
