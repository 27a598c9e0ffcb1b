"""What passes through unchanged is byte-equal: whatever the schema, alone and among others, compiled and not."""

from __future__ import annotations

import json
from datetime import time
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.serde.avro_bytes import columns_of_bytes
from twopc import Context, Job, Json, KafkaSink, KafkaSource, ListState, MapState, Processor, Record, String, ValueState
from twopc.serde import Avro
from twopc.serde.avro import read_value, write_value
from twopc.serde.avro_schema import prepared
from twopc.testing import MemoryRun


def record(name: str, **fields: Any) -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": [{"name": each, "type": kind} for each, kind in fields.items()]}


@settings(deadline=None, max_examples=150)
@given(columns_of_bytes())
def test_bytes_that_pass_through_are_the_same(drawn: tuple[dict[str, Any], list[bytes]]) -> None:
    schema, column = drawn
    serde, ready = Avro(schema), prepared(json.dumps(schema, sort_keys=True))
    assert serde.serialize_all(serde.deserialize_all(list(column))) == column
    assert [write_value(ready, read_value(ready, data)) for data in column] == column


@settings(deadline=None, max_examples=60)
@given(columns_of_bytes(), st.data())
def test_bytes_that_are_damaged_are_refused_or_read_to_what_is_written_back_equal(
    drawn: tuple[dict[str, Any], list[bytes]], data: st.DataObject
) -> None:
    schema, column = drawn
    ready, whole = prepared(json.dumps(schema, sort_keys=True)), column[0]
    place = data.draw(st.integers(0, len(whole)))
    damaged = whole[:place] + data.draw(st.binary(max_size=3)) + whole[place + data.draw(st.integers(0, 3)) :]
    try:
        value = read_value(ready, damaged)
    except ValueError:
        return
    again = write_value(ready, value)
    assert write_value(ready, read_value(ready, again)) == again


@settings(deadline=None, max_examples=20)
@given(columns_of_bytes())
def test_examples_of_any_schema_can_be_written_and_read(drawn: tuple[dict[str, Any], list[bytes]]) -> None:
    serde = Avro(drawn[0])
    column = serde.serialize_all(serde.examples(3))
    assert serde.serialize_all(serde.deserialize_all(list(column))) == column


CREATED, DELETED = record("Created", id="long"), record("Deleted", id="long")
EVENT = Avro(record("Envelope", event=[CREATED, DELETED]))


class Kept(Processor):
    """Emits what it kept of the record before, in each kind of state."""

    last = ValueState(EVENT)
    every = ListState(EVENT)
    by_name = MapState(EVENT, key=String())

    def process(self, record: Record, context: Context) -> list[Record]:
        kept = [self.last.get(), *self.every.get(), self.by_name.get("last")]
        self.last.set(record.value)
        self.every.add(record.value)
        self.by_name.put("last", record.value)
        return [record.replace(value=each) for each in kept if each is not None]


def test_a_state_gives_back_the_branch_that_was_read() -> None:
    job = Job("kept")
    job.source(KafkaSource("in", value=EVENT)).process(Kept(), name="kept").sink(KafkaSink("out", value=EVENT))
    with MemoryRun(job) as run:
        run.send_raw("in", b"\2\4", b"k")
        run.checkpoint()
        run.crash()
        run.send_raw("in", b"\0\2", b"k")
        run.checkpoint()
        assert [EVENT.branch_of(each.value["event"]) for each in run.read("out")] == ["Deleted"] * 3


def test_a_value_that_is_made_anew_is_refused_where_its_branch_is_not_clear_and_taken_where_it_is_said() -> None:
    event = EVENT.deserialize(b"\2\4")["event"]
    assert event == {"id": 2}
    with pytest.raises(ValueError, match=r"Envelope.event is {'id': 3}, which may be Created and Deleted: say which"):
        EVENT.serialize({"event": {**event, "id": 3}})
    branch = EVENT.branch_of(event)
    assert branch == "Deleted"
    assert EVENT.serialize({"event": EVENT.in_branch(branch, {**event, "id": 3})}) == b"\2\6"


CHANGED: list[tuple[Any, Any, str]] = [
    ({"type": "array", "items": "string"}, "red", "is 'red', which is no array"),
    ({"type": "array", "items": "int"}, b"abc", "is b'abc', which is no array"),
    (["null", {"type": "array", "items": "float"}], [1e300], r"is 1e\+300, which is too large for a float"),
    (["null", record("N", f="float")], {"f": 1e300}, r"is 1e\+300, which is too large for a float"),
    ("double", "1.5", "is '1.5', which is no double"),
    ("double", True, "is True, which is no double"),
    ("double", 2**53 + 1, "which a double would round"),
    ("float", 2**24 + 1, "which a float would round"),
    (["null", "double"], 2**53 + 1, "which a double would round"),
    ("null", 1, "is 1, which is no null"),
    ({"type": "int", "logicalType": "date"}, 2**31, "is 2147483648, which is beyond what a date holds"),
    ({"type": "int", "logicalType": "time-millis"}, 86_400_000, "is 86400000, which is beyond what a time holds"),
    ({"type": "long", "logicalType": "timestamp-millis"}, 2**62, "which is beyond what a datetime holds"),
    ({"type": "string", "logicalType": "uuid"}, "0" * 32, "leave logicalType out"),
    (["string", {"type": "enum", "name": "E", "symbols": ["A"]}], "A", "which may be string and E: say which"),
    ([{"type": "map", "values": "long"}, DELETED], {"id": 1}, "which may be map and Deleted: say which"),
    (["null", "string"], 1, "is 1, which is no string"),
    (["null", "string", "bytes"], 1, "is 1, which is none of null, string, bytes"),
    (record("In", n="int"), {"n": 1, "more": 2}, "has 'more', of which the schema of In says nothing"),
]


@pytest.mark.parametrize(("kind", "value", "complaint"), CHANGED)
def test_what_would_change_is_refused_by_the_name_of_its_field(kind: Any, value: Any, complaint: str) -> None:
    serde = Avro(record("Order", it=kind))
    for write in (serde.serialize, lambda each: serde.serialize_all([each])):
        with pytest.raises(Exception, match=rf"(Order\.it|N\.f) (is .*)?{complaint}"):
            write({"it": value})


UNREADABLE: list[tuple[Any, bytes, str]] = [
    ({"type": "int", "logicalType": "date"}, b"\xfe\xff\xff\xff\x0f", "Order.it is 2147483647, which is beyond"),
    ({"type": "int", "logicalType": "time-millis"}, b"\1", "Order.it is -1, which is beyond what a time holds"),
    ({"type": "map", "values": "int"}, b"\4\2a\2\2a\4\0", "Order.it has the key 'a' twice"),
    ({"type": "string", "logicalType": "uuid"}, b"\x40" + b"0" * 32, "Order.it is '0+', which would become 0"),
    ("float", b"\1\0\x80\x7f", "Order.it is a signalling NaN"),
    ("boolean", b"\2", "Order.it is the byte 2"),
    ("string", b"\2\xff", "Order.it is .*, which is no UTF-8"),
    ("long", b"\x80", "the bytes end within Order.it"),
    (
        {"type": "array", "items": "null"},
        b"\x80\x80\x80\x80\x80\x10\0",
        "Order.it has a block of [0-9]+ elements in 1 bytes",
    ),
    (["int", "null"], b"\4", "Order.it is of branch 2 of a union, which has 2"),
]


@pytest.mark.parametrize(("kind", "data", "complaint"), UNREADABLE)
def test_what_would_be_read_as_something_else_is_refused_by_the_name_of_its_field(
    kind: Any, data: bytes, complaint: str
) -> None:
    with pytest.raises(ValueError, match=complaint):
        Avro(record("Order", it=kind)).deserialize(data)


def test_a_union_that_has_a_type_twice_is_refused_when_the_job_is_built() -> None:
    with pytest.raises(Exception, match=r"the union Order.it has two branches that are long"):
        Avro(record("Order", it=["long", {"type": "long", "logicalType": "timestamp-millis"}]))


DEFAULTS: dict[str, tuple[Any, Any, bytes]] = {
    "decimal": ({"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}, "\0", b"\2\0"),
    "date": ({"type": "int", "logicalType": "date"}, 1, b"\2"),
    "fixed": ({"type": "fixed", "name": "F", "size": 2}, "\xff\0", b"\xff\0"),
    "bytes": ("bytes", "\xff", b"\2\xff"),
    "record": (record("In", x="bytes"), {"x": "\1"}, b"\2\1"),
    "list": ({"type": "array", "items": "bytes"}, ["\1"], b"\2\2\1\0"),
    "map": ({"type": "map", "values": "bytes"}, {"a": "\1"}, b"\2\2a\2\1\0"),
    "the first branch that takes it": (["int", "bytes"], "\1", b"\2\2\1"),
}


@pytest.mark.parametrize("name", DEFAULTS)
def test_a_default_is_written_as_its_type_has_it(name: str) -> None:
    kind, default, expected = DEFAULTS[name]
    fields = [{"name": "id", "type": "long"}, {"name": "it", "type": kind, "default": default}]
    serde = Avro({"type": "record", "name": "Order", "fields": fields})
    assert serde.serialize_all([{"id": 1}]) == [b"\2" + expected]


def test_a_default_that_is_not_of_its_type_is_refused_where_it_is_needed() -> None:
    fields = [{"name": "it", "type": {"type": "int", "logicalType": "time-millis"}, "default": -1}]
    serde = Avro({"type": "record", "name": "Order", "fields": fields})
    with pytest.raises(ValueError, match=r"Order.it is missing, and its default is not of its type: .*beyond"):
        serde.serialize({})


ALIKE: list[tuple[Any, bytes]] = [
    (["double", "float"], b"\2\0\0\0\x3f"),
    (["int", "long"], b"\2\2"),
    (["string", {"type": "enum", "name": "E", "symbols": ["A"]}], b"\2\0"),
    ([CREATED, DELETED], b"\2\4"),
    (
        [{"type": "fixed", "name": "U", "size": 16, "logicalType": "uuid"}, {"type": "string", "logicalType": "uuid"}],
        b"\2\x48" + b"00000000-0000-0000-0000-00000000000a",
    ),
    ([{"type": "int", "logicalType": "time-millis"}, {"type": "long", "logicalType": "time-micros"}], b"\2\2"),
]


@pytest.mark.parametrize(("kind", "data"), ALIKE)
def test_a_value_that_knows_its_branch_is_as_any_other_to_json(kind: Any, data: bytes) -> None:
    value = Avro(record("Order", it=kind)).deserialize(data)["it"]
    assert Avro.branch_of(value) is not None
    base = next(each for each in type(value).__mro__ if each.__module__ in ("builtins", "uuid", "datetime"))
    plain = UUID(str(value)) if base is UUID else time.fromisoformat(str(value)) if base is time else base(value)
    assert value == plain
    assert Json().serialize(value) == Json().serialize(plain)
