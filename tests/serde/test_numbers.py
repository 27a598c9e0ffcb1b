"""Numbers, held against what Kafka's own serializers write (java.nio.ByteBuffer, big-endian)."""

from __future__ import annotations

from typing import Any

import pytest

from twopc.serde import Double, Float, Int, Long, Serde


@pytest.mark.parametrize(
    ("serde", "value", "data"),
    [
        (Int(), 1, "00000001"),
        (Int(), -2, "fffffffe"),
        (Int(), -(2**31), "80000000"),
        (Long(), 1, "0000000000000001"),
        (Long(), -(2**63), "8000000000000000"),
        (Float(), 1.5, "3fc00000"),
        (Float(), 0.1, "3dcccccd"),
        (Double(), 0.1, "3fb999999999999a"),
        (Double(), float("-inf"), "fff0000000000000"),
    ],
)
def test_a_number_has_the_bytes_that_kafka_gives_it(serde: Serde, value: Any, data: str) -> None:
    assert serde.serialize(value) == bytes.fromhex(data)


@pytest.mark.parametrize(
    ("serde", "value", "complaint"),
    [
        (Int(), 2**31, "the serde is Int.., so a value must be from -2147483648 to 2147483647, not 2147483648"),
        (Long(), 2**63, "a value must be from -9223372036854775808 to 9223372036854775807"),
        (Int(), 1.5, "a value must be int or None, not float"),
        (Long(), True, "a value must be int or None, not bool"),
        (Float(), 1e39, "the serde is Float.., so a value must not be as large as 1e.39"),
        (Double(), 10**400, "a value must not be as large as 1000"),
        (Double(), 2**53 + 1, "no floating-point number of its size is 9007199254740993"),
        (Float(), 2**24 + 1, "no floating-point number of its size is 16777217"),
        (Double(), "1", "a value must be float or None, not str"),
    ],
)
def test_what_does_not_fit_is_refused(serde: Serde, value: Any, complaint: str) -> None:
    with pytest.raises((TypeError, ValueError), match=complaint):
        serde.serialize(value)


@pytest.mark.parametrize("serde", [Int(), Long(), Float(), Double()], ids=repr)
def test_bytes_of_another_size_are_no_number(serde: Serde) -> None:
    with pytest.raises(ValueError, match=r"a value has [48] bytes, not 5"):
        serde.deserialize(b"12345")


def test_an_integer_may_be_written_as_a_floating_point_number() -> None:
    assert Double().deserialize(Double().serialize(3)) == 3.0
