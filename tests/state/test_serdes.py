"""What a snapshot says of the serdes of its states."""

from __future__ import annotations

from typing import Any

import pytest
from google.protobuf.descriptor_pb2 import FieldDescriptorProto
from google.protobuf.wrappers_pb2 import StringValue

from twopc.errors import CheckpointCorrupted, ConfigurationError
from twopc.protocol.envelope import encode_fact
from twopc.serde import Avro, Bytes, Json, Long, Protobuf, Serde, String
from twopc.state.backend import Family
from twopc.state.forms import ListOf, MapOf, Timed
from twopc.state.layout import StateName
from twopc.state.memory import MemoryBackend
from twopc.state.serdes import KEY, check_serdes, read_serdes, serde_named, write_serdes

COUNT, OTHER_STATE, NEW = map(StateName.parse, ("count", "other", "new"))
FIRST, SECOND = map(StateName.parse, ("first", "second"))
NAME = "google.protobuf.StringValue"
SCHEMA = {"type": "record", "name": "Total", "fields": [{"name": "n", "type": "int"}]}


OTHER = {**SCHEMA, "fields": [{"name": "n", "type": "long"}]}


class Own(Json):
    """A serde of the user's, which happens to be made of one of ours."""


def test_every_serde_of_this_package_comes_back_and_a_users_own_is_only_known_to_be_there() -> None:
    backend = MemoryBackend()
    serdes: dict[str, Serde] = {"a": Avro(SCHEMA), "b": Bytes(), "j": Json(), "s": String(), "o/own": Own()}
    write_serdes(backend, {StateName.parse(name): serde for name, serde in serdes.items()})
    found = {str(state): serde for state, serde in read_serdes(backend).items()}
    assert {name: type(serde) for name, serde in found.items()} == {
        "a": Avro,
        "b": Bytes,
        "j": Json,
        "s": String,
        "o/own": type(None),
    }
    assert isinstance(found["a"], Avro)
    assert found["a"].schema == SCHEMA


@pytest.mark.parametrize(
    ("written", "declared", "told"),
    [
        (Json(), String(), "as Json wrote it, and the job declares String"),
        (Own(), Json(), "as Own wrote it"),
        (Avro(SCHEMA), Json(), "as Avro wrote it"),
        (Json(), Avro(SCHEMA), "as Json wrote it"),
        (Json(), Timed(Json()), r"as Json wrote it, and the job declares Json\(\) with a ttl"),
        (Timed(Json()), Json(), "as Json with a ttl wrote it"),
        (Timed(Json()), Timed(String()), "as Json with a ttl wrote it"),
        (ListOf(Json()), Json(), r"as a list of Json wrote it, and the job declares Json\(\)"),
        (Json(), ListOf(Json()), r"as Json wrote it, and the job declares a list of Json\(\)"),
        (ListOf(Own()), ListOf(Json()), "as a list of Own wrote it"),
        (MapOf(String(), Json()), Timed(MapOf(Json(), Json())), "as a map of String to Json wrote it"),
        (MapOf(String(), Json()), MapOf(Json(), Json()), "as a map of String to Json wrote it"),
        (
            Timed(Avro(SCHEMA)),
            Timed(Avro(OTHER)),
            r"as Avro with another schema \(Total.n was int, and is long\) with a ttl wrote it",
        ),
        (Avro(SCHEMA), Avro(OTHER), r"as Avro with another schema \(Total.n was int, and is long\) wrote it"),
    ],
)
def test_a_state_that_another_serde_wrote_is_refused_with_what_to_do(
    written: Serde, declared: Serde, told: str
) -> None:
    backend = MemoryBackend()
    write_serdes(backend, {COUNT: written})
    with pytest.raises(ConfigurationError, match=rf"state 'count' {told}.*--drop-states count"):
        check_serdes(backend, {COUNT: declared})


@pytest.mark.parametrize("declared", [Avro(SCHEMA), Avro({**SCHEMA, "doc": "how many"})])
def test_a_state_is_read_by_the_serde_that_wrote_it_however_its_schema_is_documented(declared: Serde) -> None:
    backend = MemoryBackend()
    write_serdes(backend, {COUNT: Avro(SCHEMA), OTHER_STATE: Own()})
    check_serdes(backend, {COUNT: declared, OTHER_STATE: Own(), NEW: Json()})


def test_what_was_said_of_other_states_stays() -> None:
    backend = MemoryBackend()
    write_serdes(backend, {FIRST: Json(), SECOND: Json()})
    write_serdes(backend, {SECOND: String()})
    assert {name: type(serde) for name, serde in read_serdes(backend).items()} == {FIRST: Json, SECOND: String}


def test_a_job_without_state_by_key_writes_nothing() -> None:
    backend = MemoryBackend()
    write_serdes(backend, {})
    assert list(backend.scan(Family.OPERATOR)) == []
    assert read_serdes(backend) == {}


@pytest.mark.parametrize("said", [7, {}, {"serde": "avro"}, {"serde": "avro", "schema": {"type": "none"}}])
def test_what_can_not_be_used_is_refused_by_the_name_of_the_state(said: object) -> None:
    backend = MemoryBackend()
    backend.put_many(Family.OPERATOR, [(KEY, encode_fact("state-serdes", {"count": said}))])
    with pytest.raises(CheckpointCorrupted, match="serde of state 'count'"):
        read_serdes(backend)


def test_only_serdes_that_need_nothing_else_have_a_name() -> None:
    assert [type(serde_named(name)) for name in ("json", "string", "bytes", "avro", "other", "")] == [
        *(Json, String, Bytes),
        *(type(None),) * 3,
    ]


@pytest.mark.parametrize(
    ("serde", "value"),
    [
        (ListOf(Json()), [1, "", {"a": None}]),
        (MapOf(String(), ListOf(Json())), {"a": [1], "b": []}),
        (MapOf(Json(), Timed(Bytes())), [(1, b""), (True, b"x"), (1.0, b"y"), ([1], b"z")]),
        (MapOf(Long(), Timed(Bytes())), {1: b"", 2: b"x"}),
    ],
)
def test_a_form_comes_back_with_its_parts_and_reads_what_it_wrote(serde: Serde, value: Any) -> None:
    backend = MemoryBackend()
    write_serdes(backend, {COUNT: serde})
    check_serdes(backend, {COUNT: serde})
    read = read_serdes(backend)[COUNT]
    assert read is not None
    assert repr(read) == repr(serde)
    assert read.deserialize(serde.serialize(value)) == value
    assert read.serialize(None) is read.deserialize(None) is None


def test_a_form_of_a_users_own_serde_is_only_known_to_be_there() -> None:
    backend = MemoryBackend()
    write_serdes(backend, {COUNT: Timed(ListOf(Own()))})
    assert read_serdes(backend) == {COUNT: None}


def total(kind: Any, **more: Any) -> dict[str, Any]:
    return {"type": "record", "name": "Total", "fields": [{"name": "n", "type": kind, **more}]}


def decimal(precision: int, scale: int) -> dict[str, Any]:
    return {"type": "bytes", "logicalType": "decimal", "precision": precision, "scale": scale}


def inner(*names: str) -> dict[str, Any]:
    return {"type": "record", "name": "a.In", "fields": [{"name": name, "type": "int"} for name in names]}


LONG = "long"
MILLIS, MICROS = ({"type": "long", "logicalType": f"timestamp-{unit}"} for unit in ("millis", "micros"))
ENUM = {"type": "enum", "name": "E", "symbols": ["A", "B"]}
FIXED = {"type": "fixed", "name": "F", "size": 2}
OTHERS: list[tuple[Any, Any, str]] = [
    (
        decimal(9, 2),
        decimal(9, 3),
        "Total.n was decimal of precision 9 and scale 2, and is decimal of precision 9 and scale 3",
    ),
    (decimal(9, 2), "bytes", "Total.n was decimal of precision 9 and scale 2, and is bytes"),
    (MILLIS, MICROS, "Total.n was timestamp-millis, and is timestamp-micros"),
    (LONG, MILLIS, "Total.n was long, and is timestamp-millis"),
    (ENUM, {**ENUM, "symbols": ["B", "A"]}, "Total.n was E of A, B, and is E of B, A"),
    (FIXED, {**FIXED, "logicalType": "nobody's"}, "Total.n was F of 2 bytes, and is F of 2 bytes"),
    (["null", LONG], [LONG, "null"], "Total.n was null, and is long"),
    (["null", LONG], ["null", "int", LONG], "Total.n was null or long, and is null or int or long"),
    ({"type": "array", "items": LONG}, {"type": "array", "items": MICROS}, "Total.n was long, and is timestamp-micros"),
    (
        {"type": "map", "values": ["null", LONG]},
        {"type": "map", "values": ["null", MICROS]},
        "Total.n was long, and is timest",
    ),
    (inner("x", "y"), inner("y", "x"), "In had the fields x, y, and has y, x"),
    (inner("x"), {**inner("x"), "name": "b.In"}, "Total.n was a.In, and is b.In"),
]


@pytest.mark.parametrize(("written", "declared", "told"), OTHERS)
def test_a_schema_that_means_something_else_is_another_state_and_says_where(
    written: Any, declared: Any, told: str
) -> None:
    backend = MemoryBackend()
    for form in (lambda of: of, lambda of: MapOf(String(), ListOf(of))):
        write_serdes(backend, {COUNT: form(Avro(total(written)))})
        with pytest.raises(ConfigurationError, match=rf"Avro with another schema \({told}"):
            check_serdes(backend, {COUNT: form(Avro(total(declared)))})


SAME: list[tuple[dict[str, Any], dict[str, Any]]] = [
    (total(decimal(9, 0)), total({"type": "bytes", "logicalType": "decimal", "precision": 9})),
    (total("int"), total("int", default=7, doc="how many", aliases=["m"], order="ignore")),
    (total("int"), total({"type": "int"})),
    (total("int"), {**total("int"), "aliases": ["Sum"], "doc": "a sum"}),
    (total(inner("x")), total({**inner("x"), "name": "In", "namespace": "a"})),
]


@pytest.mark.parametrize(("written", "declared"), [*SAME, *((other, one) for one, other in SAME)])
def test_a_schema_that_means_the_same_is_the_same_state(written: dict[str, Any], declared: dict[str, Any]) -> None:
    backend = MemoryBackend()
    write_serdes(backend, {COUNT: Avro(written)})
    check_serdes(backend, {COUNT: Avro(declared)})


def test_a_number_of_a_message_that_is_another_field_now_is_another_state(monkeypatch: pytest.MonkeyPatch) -> None:
    backend, serde, form = MemoryBackend(), Protobuf(StringValue), ListOf(Protobuf(StringValue))
    write_serdes(backend, {COUNT: serde, OTHER_STATE: form})
    check_serdes(backend, {COUNT: serde, OTHER_STATE: form})
    shapes: list[tuple[dict[str, dict[str, str]], str | None]] = [
        ({NAME: {"1": "string value", "2": "int64 more"}}, None),
        ({NAME: {}}, None),
        ({NAME: {"1": "bytes value"}}, "was string value, and is bytes value"),
        ({NAME: {"1": "string text"}}, "was string value, and is string text"),
    ]
    for made, told in shapes:
        monkeypatch.setattr(Protobuf, "shape", made)
        if told is None:
            check_serdes(backend, {COUNT: serde, OTHER_STATE: form})
        else:
            with pytest.raises(ConfigurationError, match=rf"with another schema \(1 in {NAME} {told}\) wrote it"):
                check_serdes(backend, {COUNT: serde})
            with pytest.raises(ConfigurationError, match=r"as a list of Protobuf.* with another schema"):
                check_serdes(backend, {OTHER_STATE: form})


def test_the_shape_of_a_message_has_all_that_it_is_made_of() -> None:
    found = Protobuf(FieldDescriptorProto).shape
    assert found["google.protobuf.FieldDescriptorProto"]["3"] == "int32 number"
    assert found["google.protobuf.FieldDescriptorProto"]["4"] == "google.protobuf.FieldDescriptorProto.Label label"
    assert found["google.protobuf.FieldDescriptorProto.Label"]["1"] == "LABEL_OPTIONAL"
    assert found["google.protobuf.FieldOptions"]["999"].startswith("repeated google.protobuf.UninterpretedOption ")
