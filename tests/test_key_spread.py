"""Which keys have several states, by a sample of what the inputs hold."""

from __future__ import annotations

from twopc.key_spread import KeySample, keys_apart

KEYED = {"count": ("one", "two")}
ONE = KeySample("a", {b"k": frozenset([3]), b"l": frozenset([1])}, frozenset(["java"]), source="one")


def test_a_key_that_two_inputs_have_in_different_partitions_is_named_with_both_and_how_each_is_written() -> None:
    two = KeySample("b", {b"k": frozenset([0])}, frozenset(["sarama"]), source="two")
    [why] = keys_apart([ONE, two], KEYED).values()
    assert "'count' keeps a state for each key, and key 'k' is in a[3], b[0] (a: java, b: sarama)" in why


def test_a_key_in_two_partitions_of_one_input_is_named() -> None:
    [why] = keys_apart([KeySample("a", {b"k": frozenset([0, 2])}, source="one")], KEYED).values()
    assert "key 'k' is in a[0], a[2]: such" in why


def test_inputs_that_are_written_in_different_ways_are_named_though_no_key_was_seen_in_both() -> None:
    two = KeySample("b", {b"m": frozenset([0])}, frozenset(["sarama", "another"]), source="two")
    [why] = keys_apart([ONE, two], KEYED).values()
    assert "spread in different ways (a: java, b: another or sarama)" in why


def test_nothing_is_said_of_inputs_that_may_be_written_in_one_way() -> None:
    two = KeySample("b", {b"k": frozenset([3])}, frozenset(["java", "sarama"]), source="two")
    unknown = KeySample("c", {b"m": frozenset([0])}, source="two")
    assert keys_apart([ONE, two, unknown], KEYED) == {}


def test_nothing_is_said_of_inputs_that_meet_at_no_keyed_operator() -> None:
    elsewhere = KeySample("b", {b"k": frozenset([0])}, frozenset(["sarama"]), source="three")
    assert keys_apart([ONE, elsewhere], {"count": ("one",), "sum": ("three",)}) == {}


def test_a_key_is_shown_in_part_where_it_is_long_and_escaped_where_it_is_no_text() -> None:
    [why] = keys_apart([KeySample("a", {b"\xff" * 100: frozenset([0, 2])}, source="one")], KEYED).values()
    assert len(why) < 400
    assert "xff" in why
