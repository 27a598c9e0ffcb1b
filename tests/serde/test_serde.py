from __future__ import annotations

import json
import pickle
import tracemalloc
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.wrappers_pb2 import StringValue
from hypothesis import given, settings
from hypothesis import strategies as st

from twopc.column import ColumnError, code_column, map_column
from twopc.errors import ConfigurationError
from twopc.serde import Avro, Bytes, Double, Float, Int, Json, Long, Protobuf, Serde, SerdeContext, String
from twopc.testing.rows import InputRow

SCHEMA: dict[str, Any] = {
    "type": "record",
    "name": "Reading",
    "fields": [
        {"name": "sensor", "type": "string"},
        {"name": "celsius", "type": ["null", "double"], "default": None},
        {"name": "ticks", "type": "long", "default": 7},
    ],
}
READINGS = st.fixed_dictionaries(
    {
        "sensor": st.text(),
        "celsius": st.none() | st.floats(allow_nan=False),
        "ticks": st.integers(-(2**63), 2**63 - 1),
    }
)
JSON_VALUES = st.recursive(
    st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner | st.none()) | st.dictionaries(st.text(), inner | st.none()),
    max_leaves=10,
)


EXAMPLES: list[tuple[Serde, st.SearchStrategy[Any]]] = [
    (Bytes(), st.binary()),
    (String(), st.text()),
    (Json(), JSON_VALUES),
    (Avro(SCHEMA), READINGS),
    (Int(), st.integers(-(2**31), 2**31 - 1)),
    (Long(), st.integers(-(2**63), 2**63 - 1)),
    (Float(), st.floats(width=32, allow_nan=False)),
    (Double(), st.floats(allow_nan=False)),
    (Protobuf(StringValue), st.builds(StringValue, value=st.text())),
]


@pytest.mark.parametrize(("serde", "values"), EXAMPLES, ids=repr)
def test_what_is_encoded_is_decoded_to_the_same_value(serde: Serde, values: st.SearchStrategy[Any]) -> None:
    @settings(deadline=None)
    @given(st.lists(values | st.none()))
    def check(column: list[Any]) -> None:
        encoded = serde.serialize_all(column)
        assert serde.deserialize_all(encoded) == column
        assert encoded == [serde.serialize(value) for value in column]
        assert [serde.deserialize(data) for data in encoded] == column

    check()


@pytest.mark.parametrize("serde", [serde for serde, _ in EXAMPLES], ids=repr)
def test_a_serde_travels_to_a_subtask(serde: Serde) -> None:
    assert repr(pickle.loads(pickle.dumps(serde))) == repr(serde)


@pytest.mark.parametrize("serde", [serde for serde, _ in EXAMPLES], ids=repr)
def test_a_serde_works_for_every_topic_alike_and_holds_nothing(serde: Serde) -> None:
    assert serde.open(SerdeContext("t", is_key=True)) is serde
    serde.close()


@pytest.mark.parametrize("serde", [serde for serde, _ in EXAMPLES], ids=repr)
def test_a_tombstone_stays_a_tombstone(serde: Serde) -> None:
    assert serde.serialize(None) is None
    assert serde.deserialize(None) is None


@pytest.mark.parametrize(
    ("serde", "column"),
    [
        (Bytes(), [b"a", None, "text"]),
        (String(), ["a", None, b"bytes"]),
        (Json(), [{}, None, {1: 2}]),
        (Int(), [1, None, 2**31]),
        (Long(), [1, None, "1"]),
        (Float(), [1.5, None, 1e39]),
        (Double(), [1.5, None, "1.5"]),
        (Protobuf(StringValue), [StringValue(), None, "text"]),
        (Avro(SCHEMA), [{"sensor": "a"}, None, {"celsius": 1.0}]),
        (Avro(SCHEMA), [{"sensor": "a"}, None, {"sensor": "a", "unknown": 1}]),
        (Avro(SCHEMA), [{"sensor": "a"}, None, {"sensor": "a", "ticks": "many"}]),
    ],
)
def test_a_value_that_can_not_be_encoded_is_told_by_its_index(serde: Serde, column: list[Any]) -> None:
    with pytest.raises(ColumnError) as caught:
        serde.serialize_all(column)
    assert caught.value.index == 2
    assert caught.value.__cause__ is caught.value.cause


@pytest.mark.parametrize(
    ("serde", "column"),
    [
        (String(), [b"a", None, b"\xff"]),
        (Json(), [b"{}", None, b"{"]),
        (Int(), [b"1234", None, b"123"]),
        (Double(), [b"12345678", None, b"1234"]),
        (Protobuf(StringValue), [b"", None, b"\xff"]),
        (Avro(SCHEMA), [b"\x02a\x00\x02", None, b"\x02"]),
        (Avro(SCHEMA), [b"\x02a\x00\x02", None, b"\x02a\x00\x02\x00"]),
    ],
)
def test_bytes_that_can_not_be_decoded_are_told_by_their_index(serde: Serde, column: list[bytes | None]) -> None:
    with pytest.raises(ColumnError) as caught:
        serde.deserialize_all(column)
    assert caught.value.index == 2


def test_only_bytes_are_the_values_themselves() -> None:
    column: list[bytes | None] = [b"a"]
    assert Bytes().deserialize_all(column) is column
    assert [serde.is_identity for serde in (Bytes(), String(), Json(), Avro(SCHEMA))] == [True, False, False, False]


@settings(deadline=None)
@given(
    st.lists(
        st.none()
        | st.sampled_from([b"", b"{", b"[1", b"2]", b"null", b" 7 ", b"\xff"])
        | JSON_VALUES.map(Json.canonical)
    )
)
def test_a_column_of_json_is_read_as_its_texts_are_one_by_one(column: list[bytes | None]) -> None:
    rows = [InputRow(each) for each in column]
    whole, failed = code_column(Json().deserialize_all, column, rows, "decoding")
    each, failed_each = code_column(partial(map_column, Json().deserialize), column, rows, "decoding")
    assert (whole, {at: str(error) for at, error in failed.items()}) == (
        each,
        {at: str(error) for at, error in failed_each.items()},
    )


def test_a_format_derived_from_json_keeps_its_own_methods_in_a_column() -> None:
    class Listed(Json):
        def deserialize(self, data: bytes | None) -> Any:
            return [super().deserialize(data)]

        def serialize(self, value: Any) -> bytes | None:
            return super().serialize(value[0])

    assert Listed().deserialize_all([b"1", None]) == [[1], [None]]
    assert Listed().serialize_all([[1], [None]]) == [b"1", None]


def test_a_json_text_takes_the_memory_of_its_length_however_many_are_kept() -> None:
    tracemalloc.start()
    try:
        kept = Json().serialize_all([{"n": number} for number in range(1000)])
        taken, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert taken < 200 * len(kept)


def test_a_serde_of_ones_own_needs_two_methods_only() -> None:
    class Number(Serde):
        def deserialize(self, data: bytes | None) -> Any:
            return None if data is None else int(data)

        def serialize(self, value: Any) -> bytes | None:
            return None if value is None else b"%d" % value

    assert Number().deserialize_all([b"1", None]) == [1, None]
    with pytest.raises(ColumnError, match="element 1: TypeError"):
        Number().serialize_all([1, "x"])


def test_avro_takes_missing_fields_from_their_defaults() -> None:
    serde = Avro(SCHEMA)
    assert serde.deserialize(serde.serialize({"sensor": "a"})) == {"sensor": "a", "celsius": None, "ticks": 7}


def test_avro_reads_its_schema_from_a_file_once(tmp_path: Path) -> None:
    file = tmp_path / "reading.avsc"
    file.write_text(json.dumps(SCHEMA))
    serde = Avro(file)
    file.unlink()
    copy = pickle.loads(pickle.dumps(serde))
    assert copy.deserialize(Avro(SCHEMA).serialize({"sensor": "a"}))["ticks"] == 7


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (None, "reading.avsc can't be read: No such file"),
        ("{", "reading.avsc is not JSON"),
        ("[]", "must be one JSON object, but is a list"),
        ('{"type": "recod", "name": "R"}', "reading.avsc given to Avro is not an Avro schema"),
    ],
)
def test_a_schema_that_is_none_is_refused_when_the_job_is_built(
    tmp_path: Path, content: str | None, complaint: str
) -> None:
    file = tmp_path / "reading.avsc"
    if content is not None:
        file.write_text(content)
    with pytest.raises(ConfigurationError, match=complaint):
        Avro(str(file))


BEYOND = [2**64, -(2**63) - 1, 10**21, -(10**19) + 1, 10**300]
WITHIN = [2**64 - 1, -(2**63), 1.7976931348623157e308, 0.12345678901234568, "1" * 40, {"1" * 30: "-" * 30}]


@pytest.mark.parametrize("number", BEYOND, ids=lambda number: str(number.bit_length()))
@pytest.mark.parametrize("form", ["{}", '{{"a": [1, {{"b": {}}}]}}', "[{}]", ' {{"text": "x", "n" :{} }} '])
def test_an_integer_of_json_beyond_64_bits_is_refused_as_the_one_that_it_is(number: int, form: str) -> None:
    text = form.format(number).encode()
    with pytest.raises(ValueError, match=rf"the integer {str(number)[:60]} is beyond 64 bits"):
        Json().deserialize(text)
    for before in (0, 1, 62, 63, 64, 200):
        with pytest.raises(ColumnError, match="is beyond 64 bits") as caught:
            Json().deserialize_all([b'{"at":1700000000000}', None][:before] * before + [b"1"] * 70 + [text, b"{torn"])
        assert caught.value.index == min(before, 2) * before + 70


@pytest.mark.parametrize("value", WITHIN, ids=lambda value: repr(value)[:20])
def test_other_long_numbers_of_json_are_read_as_they_are(value: Any) -> None:
    data = Json().serialize(value)
    assert Json().deserialize_all([None, data, data]) == [None, value, value]


def test_an_integer_in_the_text_of_a_fraction_is_the_nearest_number() -> None:
    assert Json().deserialize_all([b"100000000000000000000.01", b"1000000000000000000000e0"]) == [1e20, 1e21]


@settings(deadline=None)
@given(st.integers(-(10**25), 10**25) | st.integers(-(2**65), 2**65), st.binary(max_size=30).map(bytes.hex))
def test_an_integer_of_json_is_exact_or_refused_wherever_it_stands(number: int, text: str) -> None:
    data = json.dumps({text: text, "n": number}).encode()
    if -(2**63) <= number < 2**64:
        assert Json().deserialize_all([data]) == [{text: text, "n": number}]
    else:
        with pytest.raises(ColumnError):
            Json().deserialize_all([data])


@pytest.mark.parametrize("data", ["7fa00001", "ff800001"])
def test_a_signalling_nan_is_refused_of_which_python_makes_another(data: str) -> None:
    with pytest.raises(ValueError, match=rf"{data} is a signalling NaN"):
        Float().deserialize(bytes.fromhex(data))
