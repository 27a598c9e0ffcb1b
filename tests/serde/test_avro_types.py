"""Avro's types, to their bounds: what is written reads back equal, or is refused by the name of its field."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal, getcontext, localcontext
from typing import Any
from uuid import UUID

import pytest
from fastavro import parse_schema, schemaless_writer
from hypothesis import given
from hypothesis import strategies as st

from twopc.errors import ConfigurationError
from twopc.serde import Avro


def of(kind: Any) -> Avro:
    return Avro({"type": "record", "name": "Order", "fields": [{"name": "it", "type": kind}]})


def logical(kind: str, logical_type: str, **more: Any) -> dict[str, Any]:
    return {"type": kind, "logicalType": logical_type, **more}


def decimal(precision: int, scale: int, **more: Any) -> dict[str, Any]:
    return logical("bytes", "decimal", precision=precision, scale=scale, **more)


def digits(number: int) -> tuple[int, ...]:
    return tuple(map(int, str(abs(number))))


def cut(value: Any) -> Any:
    return value.replace(microsecond=value.microsecond // 1000 * 1000)


ZONED = st.datetimes(datetime(1, 1, 2), datetime(9999, 12, 30), timezones=st.just(UTC))
FIXED = {"type": "fixed", "name": "F", "size": 8, "logicalType": "decimal", "precision": 18, "scale": 4}
TYPES: dict[str, tuple[Any, st.SearchStrategy[Any]]] = {
    "int": ("int", st.integers(-(2**31), 2**31 - 1)),
    "long": ("long", st.integers(-(2**63), 2**63 - 1)),
    "float": ("float", st.floats(width=32, allow_nan=False)),
    "boolean": ("boolean", st.booleans()),
    "decimal": (decimal(38, 9), st.integers(-(10**38) + 1, 10**38 - 1).map(lambda n: Decimal((n < 0, digits(n), -9)))),
    "fixed decimal": (FIXED, st.integers(-(10**18) + 1, 10**18 - 1).map(lambda n: Decimal((n < 0, digits(n), -4)))),
    "date": (logical("int", "date"), st.dates()),
    "time-millis": (logical("int", "time-millis"), st.times().map(cut)),
    "time-micros": (logical("long", "time-micros"), st.times()),
    "timestamp-millis": (logical("long", "timestamp-millis"), ZONED.map(cut)),
    "timestamp-micros": (logical("long", "timestamp-micros"), ZONED),
    "local-timestamp-millis": (logical("long", "local-timestamp-millis"), st.datetimes().map(cut)),
    "local-timestamp-micros": (logical("long", "local-timestamp-micros"), st.datetimes()),
    "uuid": (logical("string", "uuid"), st.uuids()),
    "fixed uuid": (logical("fixed", "uuid", name="U", size=16), st.uuids()),
}


@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize("wrap", ["plain", "optional", "array", "map"])
def test_what_is_written_reads_back_equal(name: str, wrap: str) -> None:
    kind, values = TYPES[name]
    forms: dict[str, tuple[Any, st.SearchStrategy[Any]]] = {
        "plain": (kind, values),
        "optional": (["null", kind], st.none() | values),
        "array": ({"type": "array", "items": kind}, st.lists(values, max_size=3)),
        "map": ({"type": "map", "values": kind}, st.dictionaries(st.text(), values, max_size=3)),
    }
    serde = of(forms[wrap][0])

    @given(forms[wrap][1])
    def check(value: Any) -> None:
        read = serde.deserialize(serde.serialize({"it": value}))
        assert read == {"it": value}
        assert type(read["it"]) is type(value)

    check()


REFUSED: list[tuple[Any, Any, str]] = [
    ("int", 2**31, "Order.it is 2147483648: an int goes from -2147483648 to 2147483647"),
    ("int", -(2**31) - 1, "Order.it is -2147483649: an int goes"),
    ("int", 1.5, "Order.it is 1.5, which is no int"),
    ("int", True, "Order.it is True, which is no int"),
    ("int", "1", "Order.it is '1', which is no int"),
    ("long", 2**63, "Order.it is 9223372036854775808: a long goes"),
    ("long", 1.0, "Order.it is 1.0, which is no long"),
    ("float", 1e39, r"Order.it is 1e\+39, which is too large for a float"),
    ("boolean", 1, "Order.it is 1, which is no boolean"),
    ("string", b"a", "Order.it is b'a', which is no string"),
    ("bytes", None, "Order.it is None, which is no bytes"),
    ("bytes", "a", "Order.it is 'a', which is no bytes"),
    (["null", "int"], 2**31, "Order.it is 2147483648"),
    ({"type": "array", "items": "int"}, [1, 2**31], "Order.it is 2147483648: an int goes"),
    ({"type": "map", "values": "int"}, {"a": 2**31}, "Order.it is 2147483648: an int goes"),
    ({"type": "map", "values": "int"}, [1], r"Order.it is \[1\], which is no map"),
    ({"type": "array", "items": "int"}, 1, "Order.it is 1, which is no array"),
    (decimal(4, 2), Decimal("123.45"), r"Order.it is Decimal\('123.45'\), which has too many digits for precision 4"),
    (decimal(4, 2), Decimal("1.234"), "more digits behind the point than scale 2"),
    (decimal(2, 0), Decimal("1E+3"), "too many digits for precision 2"),
    (decimal(4, 2), Decimal("1E+999999"), "too many digits for precision 4"),
    (decimal(4, 2), Decimal("NaN"), "no finite Decimal of precision 4 and scale 2"),
    (decimal(4, 2), Decimal("Infinity"), "no finite Decimal"),
    (decimal(4, 2), 1.5, "Order.it is 1.5, which is no finite Decimal"),
    (["null", decimal(4, 2)], Decimal("123.45"), "too many digits for precision 4"),
    (logical("int", "date"), datetime(2026, 1, 1, 12), "a date would lose"),
    (logical("int", "date"), "2026-01-01", "Order.it is '2026-01-01', which is no date"),
    (logical("int", "time-millis"), time(1, 2, 3, 4), "whose microseconds milliseconds would lose"),
    (logical("int", "time-millis"), time(1, tzinfo=UTC), "whose time zone would be lost"),
    (
        logical("long", "timestamp-millis"),
        datetime(2026, 1, 1, 1, 1, 1, 1, UTC),
        "microseconds milliseconds would lose",
    ),
    (logical("long", "timestamp-micros"), datetime(2026, 1, 1), "no time zone"),
    (logical("long", "local-timestamp-micros"), datetime(2026, 1, 1, tzinfo=UTC), "a local timestamp would lose"),
    (logical("string", "uuid"), "nope", "Order.it is 'nope', which is no UUID"),
    (logical("fixed", "uuid", name="U", size=16), "nope", "which is no UUID"),
]


@pytest.mark.parametrize(("kind", "value", "complaint"), REFUSED)
def test_what_would_not_read_back_equal_is_refused_by_the_name_of_its_field(
    kind: Any, value: Any, complaint: str
) -> None:
    with pytest.raises((TypeError, ValueError), match=complaint):
        of(kind).serialize({"it": value})


def test_a_decimal_is_exact_whatever_the_context_of_the_caller() -> None:
    value = Decimal("-12345678901234567890123456789.123456789")
    serde = of(decimal(38, 9))
    with localcontext() as context:
        context.prec = 6
        assert serde.deserialize(serde.serialize({"it": value})) == {"it": value}
    assert getcontext().prec == 28


def test_a_decimal_may_have_zeros_that_its_scale_does_not_need() -> None:
    serde = of(decimal(4, 2))
    assert serde.deserialize(serde.serialize({"it": Decimal("1.2000")})) == {"it": Decimal("1.20")}


def test_a_decimal_of_more_digits_than_its_precision_is_not_read_as_another() -> None:
    with pytest.raises(ValueError, match=r"Order.it has more than the 4 digits of its precision"):
        of(decimal(4, 2)).deserialize(b"\x06\x7f\xff\xff")


@pytest.mark.parametrize("kind", ["int", ["int", "null"]])
def test_an_int_out_of_range_is_not_read(kind: Any) -> None:
    data = b"\x80\x80\x80\x80\x10" if kind == "int" else b"\x00\x80\x80\x80\x80\x10"
    with pytest.raises(ValueError, match=r"Order.it is 2147483648: an int goes"):
        of(kind).deserialize(data)


def test_a_decimal_without_a_precision_is_refused_when_the_job_is_built() -> None:
    with pytest.raises(ConfigurationError, match=r"the decimal Order.it has no precision of at least 1"):
        of(decimal(0, 0))


def test_a_union_takes_the_branch_that_holds_the_value() -> None:
    serde = of(["int", "long", "string"])
    for value in (1, 2**31, "text"):
        assert serde.deserialize(serde.serialize({"it": value})) == {"it": value}
    records = [
        {"type": "record", "name": name, "fields": [{"name": "n", "type": kind}]}
        for name, kind in (("Small", decimal(2, 0)), ("Large", decimal(9, 0)), ("Text", "string"))
    ]
    for content in (Decimal(12345), "text"):
        assert of(records).deserialize(of(records).serialize({"it": {"n": content}})) == {"it": {"n": content}}


def test_a_record_within_itself_is_checked_at_every_depth() -> None:
    fields = [{"name": "n", "type": "int"}, {"name": "rest", "type": {"type": "array", "items": "List"}}]
    serde = Avro({"type": "record", "name": "List", "namespace": "a.b", "fields": fields})
    deep = {"n": 1, "rest": [{"n": 2, "rest": []}, {"n": 3, "rest": [{"n": 4, "rest": []}]}]}
    assert serde.deserialize(serde.serialize(deep)) == deep
    deep["rest"][1]["rest"][0]["n"] = 2**31  # type: ignore[index]
    with pytest.raises(ValueError, match=r"List.n is 2147483648"):
        serde.serialize(deep)


def test_avros_own_number_may_be_written_for_what_it_stands_for() -> None:
    serde = of(logical("long", "timestamp-millis"))
    assert serde.deserialize(serde.serialize({"it": 5})) == {
        "it": datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=5)
    }


def test_a_timestamp_of_another_zone_is_the_same_instant() -> None:
    serde, value = of(logical("long", "timestamp-micros")), datetime(2026, 1, 1, tzinfo=timezone(timedelta(hours=2)))
    assert serde.deserialize(serde.serialize({"it": value})) == {"it": value}


@pytest.mark.parametrize("name", TYPES)
def test_the_bytes_are_those_that_fastavro_writes(name: str) -> None:
    from io import BytesIO

    kind, values = TYPES[name]
    serde = of(kind)

    @given(values)
    def check(value: Any) -> None:
        plain = BytesIO()
        theirs = value.bytes if name == "fixed uuid" and isinstance(value, UUID) else value
        schemaless_writer(plain, parse_schema(serde.schema), {"it": theirs})
        read = of(kind).deserialize(plain.getvalue())
        assert read == {"it": value}

    check()


def test_examples_fit_a_schema_with_every_type() -> None:
    fields = [{"name": f"f{n}", "type": kind} for n, (kind, _) in enumerate(TYPES.values())]
    fields.append({"name": "small", "type": decimal(1, 0)})
    serde = Avro({"type": "record", "name": "All", "fields": fields})
    values = serde.examples(20)
    assert [len(serde.serialize(value) or b"") > 0 for value in values] == [True] * 20
    assert date.min < serde.deserialize(serde.serialize(values[0]))["f6"]
