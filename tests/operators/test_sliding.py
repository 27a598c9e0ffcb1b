"""Sliding windows: which there are, what is in them, when they close, held against the records themselves."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.operators.kit import put_through
from tests.operators.test_windows import values
from tests.operators.window_kit import WindowHarness, at
from twopc import ConfigurationError, Json, Sliding, Window
from twopc.operators.window_step import Aggregate, Reduce
from twopc.state.forms import SlidingOf
from twopc.state.layout import StateName
from twopc.testing.rows import batch_of
from twopc.testing.states import DictStore

TEN = Sliding("10ms")
JOINED = Reduce(lambda so_far, value: so_far + value)


def test_the_windows_are_those_of_the_example_of_kafka_streams() -> None:
    told = WindowHarness(Sliding("5s"), grace_ms=5_000).put(
        at(("a", 8_000), ("a", 9_200), ("a", 12_400), ("z", 99_000))
    )
    assert told["final"] == [
        ("a", 3_000, 8_000, 1),
        ("a", 4_200, 9_200, 2),
        ("a", 7_400, 12_400, 3),
        ("a", 8_001, 13_001, 2),
        ("a", 9_201, 14_201, 1),
    ]


def test_records_just_the_size_apart_share_a_window_and_those_further_apart_do_not() -> None:
    told = WindowHarness(TEN).put(at(("a", 100), ("a", 110), ("z", 999)))
    assert told["final"] == [("a", 90, 100, 1), ("a", 100, 110, 2), ("a", 101, 111, 1)]
    told = WindowHarness(TEN).put(at(("a", 100), ("a", 111), ("z", 999)))
    assert told["final"] == [("a", 90, 100, 1), ("a", 101, 111, 1)]


def test_a_window_is_over_when_stream_time_is_behind_its_end_and_the_grace() -> None:
    windowed = WindowHarness(TEN, grace_ms=5)
    assert "final" not in windowed.put(at(("a", 100), ("b", 105)))
    assert windowed.put(at(("b", 106)))["final"] == [("a", 90, 100, 1)]


def test_a_record_goes_into_its_windows_that_are_still_open_and_is_late_behind_the_last() -> None:
    windowed = WindowHarness(TEN)
    windowed.put(at(("a", 95), ("z", 100)))
    assert windowed.put(at(("a", 93)))["current"] == [("a", 94, 104, 1)]
    assert windowed.put(at(("a", 90))) == {"current": [("a", 91, 101, 2)]}
    assert windowed.put(at(("a", 89)))["late"] == [("a", 1, 89)]
    assert windowed.put(at(("z", 999)))["final"][1:] == [("a", 91, 101, 2), ("a", 94, 104, 1)]


def test_a_window_that_is_over_is_part_of_the_next_one_even_behind_a_restart() -> None:
    store = DictStore()
    WindowHarness(TEN, store=store).put(at(("a", 100)))
    assert WindowHarness(TEN, store=store).put(at(("z", 105)))["final"] == [("a", 90, 100, 1)]
    assert WindowHarness(TEN, store=store).put(at(("a", 106)))["current"] == [("a", 96, 106, 2), ("a", 101, 111, 1)]


def test_a_record_whose_own_window_is_over_is_in_those_of_later_records() -> None:
    windowed = WindowHarness(TEN)
    assert windowed.put(at(("z", 100), ("a", 95)))["current"] == [("z", 90, 100, 1)]
    assert windowed.put(at(("a", 103)))["current"] == [("a", 93, 103, 2), ("a", 96, 106, 1)]


def test_every_window_takes_its_records_in_the_order_in_which_they_came() -> None:
    told = WindowHarness(TEN, JOINED, grace_ms=50, outputs=["final"]).put(
        values(("a", 100, "x"), ("a", 104, "y"), ("a", 102, "z"), ("b", 999, ""))
    )
    assert told["final"] == [
        ("a", 90, 100, "x"),
        ("a", 92, 102, "xz"),
        ("a", 94, 104, "xyz"),
        ("a", 101, 111, "yz"),
        ("a", 103, 113, "y"),
    ]


def test_aggregates_of_windows_do_not_share_what_a_function_changes() -> None:
    def listed(so_far: list[int], value: int) -> list[int]:
        so_far.append(value)
        return so_far

    told = WindowHarness(TEN, Aggregate([], listed)).put(values(("a", 100, 1), ("a", 105, 2), ("b", 999, 0)))
    assert told["final"] == [("a", 90, 100, [1]), ("a", 95, 105, [1, 2]), ("a", 101, 111, [2])]


def test_the_timestamp_of_a_final_window_is_its_end_which_belongs_to_it() -> None:
    windowed = WindowHarness(TEN, outputs=["final"])
    windowed.put(at(("a", 100)))
    (output,) = put_through(windowed.flow, "in", batch_of(at(("b", 500))))
    assert output.batch.timestamps == [100]


def test_when_time_has_passed_nothing_is_left_but_the_stream_time() -> None:
    store = DictStore()
    WindowHarness(TEN, store=store).put(at(("a", 100), ("a", 105), ("a", 109), ("b", 200), ("c", 999)))
    assert {(state.name, key) for state, _, key in store.states} == {
        ("$stream-time", b""),
        ("$told", b""),
        ("$open-windows", b""),
        ("op", b"c"),
        ("$timers", (2**63 + 1_000).to_bytes(8) + b"c"),
    }


def test_to_look_at_there_are_the_open_windows_and_not_what_is_remembered() -> None:
    store = DictStore()
    windowed = WindowHarness(TEN, store=store)
    windowed.put(at(("a", 100), ("a", 104), ("z", 107)))
    stored = store.states[StateName("op", "op"), 0, b"a"]
    assert SlidingOf(Json()).deserialize(stored) == [Window(101, 111, 1)]
    windowed.put(at(("z", 999)))
    assert (StateName("op", "op"), 0, b"a") not in store.states


@pytest.mark.parametrize("now", [101, 107])
def test_open_windows_of_another_size_are_refused_by_name_remembered_ones_too(now: int) -> None:
    store = DictStore()
    WindowHarness(TEN, store=store).put(at(("a", 100), ("z", now)))
    with pytest.raises(ConfigurationError, match="is still open from before, and is none of these"):
        WindowHarness(Sliding("20ms"), store=store).put(at(("a", 107)))


def test_a_size_of_nothing_is_refused() -> None:
    with pytest.raises(ConfigurationError, match=r"the size of Sliding\('0s'\) must be longer than nothing"):
        Sliding("0s")


Parts = list[tuple[str, int]]
PARTS: st.SearchStrategy[Parts] = st.lists(st.tuples(st.sampled_from("ab"), st.integers(50, 110)), max_size=30)
GRACES = st.sampled_from([0, 1, 7, 100])


def test_a_window_that_begins_where_a_record_dropped_out_is_told_though_its_first_record_comes_late() -> None:
    told = WindowHarness(TEN, grace_ms=7).put(at(("a", 50), ("a", 68), ("a", 51), ("z", 999)))
    assert told["final"] == [("a", 40, 50, 1), ("a", 51, 61, 1), ("a", 58, 68, 1)]


@given(PARTS, GRACES)
def test_what_comes_out_and_stays_does_not_depend_on_restarts(parts: Parts, grace: int) -> None:
    rows = values(*((key, time, [index]) for index, (key, time) in enumerate(parts)))
    whole, store = WindowHarness(TEN, JOINED, grace_ms=grace), DictStore()
    expected = whole.put(rows)
    told: dict[str, list[Any]] = {}
    for row in rows:
        for name, some in WindowHarness(TEN, JOINED, grace_ms=grace, store=store).put([row]).items():
            told[name] = told.get(name, []) + some
    assert told == expected
    assert isinstance(whole.store, DictStore)
    assert store.states == whole.store.states


@given(PARTS, GRACES)
def test_a_window_is_final_as_it_was_last_told(parts: Parts, grace: int) -> None:
    rows = values(*((key, time, [index]) for index, (key, time) in enumerate(parts)), ("z", 9_999, []))
    told = WindowHarness(TEN, JOINED, grace_ms=grace).put(rows)
    last = {(key, start): value for key, start, _, value in told["current"] if key != "z"}
    assert {(key, start): value for key, start, _, value in told.get("final", [])} == last


@given(PARTS, GRACES, GRACES)
def test_a_grace_that_was_changed_leaves_each_window_that_was_open_to_be_told_once(
    parts: Parts, before: int, behind: int
) -> None:
    store = DictStore()
    rows, half = values(*((key, time, [0]) for key, time in parts)), len(parts) // 2
    told = WindowHarness(TEN, JOINED, grace_ms=before, store=store).put(rows[:half])
    more = WindowHarness(TEN, JOINED, grace_ms=behind, store=store).put(rows[half:])
    rest = WindowHarness(TEN, JOINED, grace_ms=behind, store=store).put(values(("z", 9_999, [])))
    final = [(key, start) for each in (told, more, rest) for key, start, *_ in each.get("final", [])]
    if behind <= before:
        assert len(final) == len(set(final))
    opened = {(key, start) for each in (told, more) for key, start, *_ in each.get("current", [])}
    assert set(final) == opened - {("z", 9_989)}
