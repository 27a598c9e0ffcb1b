"""Entries have the order of the keys that they belong to, and each is found again as its key's alone."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from twopc.state.entry_keys import by_key, entries_prefix, escaped, number_key, parted

parts = st.lists(st.sampled_from([b"\0", b"\x01", b"\xff", b"a"]), max_size=4).map(b"".join)


@given(st.dictionaries(parts, st.dictionaries(parts, st.binary(max_size=2), min_size=1)))
def test_entries_come_back_by_key_in_the_order_of_keys(every: dict[bytes, dict[bytes, bytes]]) -> None:
    stored = [(entries_prefix(key) + own, value) for key, held in every.items() for own, value in held.items()]
    assert [(key, dict(held)) for key, held in by_key(sorted(stored))] == sorted(every.items())


@given(parts, parts, parts)
def test_a_prefix_finds_the_entries_of_its_key_alone(key: bytes, other: bytes, own: bytes) -> None:
    stored = entries_prefix(key) + own
    assert parted(stored) == (entries_prefix(key), own)
    assert stored.startswith(entries_prefix(other)) is (key == other)
    assert stored.startswith(escaped(other)) is key.startswith(other)


@given(st.integers(0, 2**64 - 1), st.integers(0, 2**64 - 1))
def test_elements_have_the_order_of_their_numbers(one: int, other: int) -> None:
    assert (number_key(one) < number_key(other)) is (one < other)
