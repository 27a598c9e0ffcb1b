"""Confluent's wire format, byte by byte."""

from __future__ import annotations

import pytest

from twopc.kafka.registry.framing import behind_indexes, head_of, packed_indexes, schema_id_of


def test_a_value_begins_with_a_zero_byte_and_the_id() -> None:
    assert head_of(0x01020304) == b"\0\1\2\3\4"
    assert schema_id_of(b"\0\1\2\3\4") == 0x01020304


@pytest.mark.parametrize(("head", "said"), [(b"\0\1\2", "these are 3"), (b"\1\0\0\0\1", "this one with 1")])
def test_what_begins_otherwise_is_refused(head: bytes, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        schema_id_of(head)


@pytest.mark.parametrize(
    ("indexes", "data"),
    [([0], b"\0"), ([1], b"\2\2"), ([0, 0], b"\4\0\0"), ([64], b"\2\x80\1"), ([1, 300], b"\4\2\xd8\4")],
)
def test_indexes_are_zigzag_numbers_behind_their_count(indexes: list[int], data: bytes) -> None:
    assert packed_indexes(indexes) == data
    assert behind_indexes(data + b"rest") == b"rest"


@pytest.mark.parametrize("data", [b"", b"\2", b"\2\x80", b"\1", b"\2\xff\xff\xff\xff\xff\xff"])
def test_indexes_that_go_wrong_are_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match="index"):
        behind_indexes(data)
