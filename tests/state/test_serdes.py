"""What a snapshot says of the serdes of its states."""

from __future__ import annotations

from typing import Any

import pytest

from twopc.errors import CheckpointCorrupted, ConfigurationError
from twopc.protocol.envelope import encode_fact
from twopc.serde import Avro, Bytes, Json, Long, Serde, String
from twopc.state.backend import Family
from twopc.state.forms import ListOf, MapOf, Timed
from twopc.state.layout import StateName
from twopc.state.memory import MemoryBackend
from twopc.state.serdes import KEY, check_serdes, read_serdes, serde_named, write_serdes

COUNT, OTHER_STATE, NEW = map(StateName.parse, ("count", "other", "new"))
FIRST, SECOND = map(StateName.parse, ("first", "second"))
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
        (Timed(Avro(SCHEMA)), Timed(Avro(OTHER)), "as Avro with another schema with a ttl wrote it"),
        (Avro(SCHEMA), Avro(OTHER), "as Avro with another schema wrote it"),
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
