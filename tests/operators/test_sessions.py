"""Sessions: what belongs together, what makes one of two, when one is over."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.operators.test_windows import values
from tests.operators.window_kit import WindowHarness, at
from twopc import ConfigurationError, Session
from twopc.operators.window_step import Aggregate, Reduce
from twopc.testing.states import DictStore

TEN = Session(gap="10ms")


def test_records_at_most_a_gap_apart_are_one_session_from_its_first_to_its_last() -> None:
    told = WindowHarness(TEN).put(at(("a", 0), ("a", 10), ("a", 21), ("a", 25), ("b", 99)))
    assert told["final"] == [("a", 0, 10, 2), ("a", 21, 25, 2)]


def test_a_session_is_over_when_stream_time_is_more_than_gap_and_grace_behind_its_last_record() -> None:
    windowed = WindowHarness(TEN, grace_ms=5)
    assert "final" not in windowed.put(at(("a", 0), ("b", 15)))
    assert windowed.put(at(("b", 16)))["final"] == [("a", 0, 0, 1)]
    assert windowed.put(at(("a", 0), ("a", 1))) == {
        "late": [("a", 1, 0)],
        "current": [("a", 1, 1, 1)],
    }


def test_a_record_between_two_sessions_makes_one_of_them() -> None:
    told = WindowHarness(TEN, grace_ms=50).put(at(("a", 0), ("a", 20), ("a", 10), ("b", 500)))
    assert told["current"][:3] == [("a", 0, 0, 1), ("a", 20, 20, 1), ("a", 0, 20, 3)]
    assert told["final"] == [("a", 0, 20, 3)]


def test_a_record_before_a_session_moves_its_start() -> None:
    told = WindowHarness(TEN, grace_ms=50).put(at(("a", 20), ("a", 12), ("b", 500)))
    assert told["final"] == [("a", 12, 20, 2)]


def test_reduce_merges_sessions_by_itself_the_earlier_first() -> None:
    windowed = WindowHarness(TEN, Reduce(lambda so_far, value: f"{so_far}{value}"), grace_ms=50)
    told = windowed.put(values(("a", 20, "x"), ("a", 0, "y"), ("a", 10, "z"), ("b", 500, "")))
    assert told["final"] == [("a", 0, 20, "yxz")]


def test_aggregate_merges_sessions_by_the_function_that_is_given() -> None:
    aggregate = Aggregate(list, lambda some, value: [*some, value], merge=lambda some, more: some + more)
    told = WindowHarness(TEN, aggregate, grace_ms=50).put(
        values(("a", 20, 1), ("a", 0, 2), ("a", 10, 3), ("b", 500, 4))
    )
    assert told["final"] == [("a", 0, 20, [2, 1, 3])]


def test_an_aggregate_over_sessions_that_nothing_merges_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="aggregate needs merge=function"):
        WindowHarness(TEN, Aggregate(0, max))


def test_a_closed_session_leaves_nothing_but_the_stream_time() -> None:
    store = DictStore()
    WindowHarness(TEN, store=store).put(at(("a", 0), ("a", 5), ("a", 9), ("b", 30), ("b", 31), ("c", 99)))
    assert {(state.name, key) for state, _, key in store.states} == {
        ("$stream-time", b""),
        ("$told", b""),
        ("op", b"c"),
        ("$timers", (2**63 + 110).to_bytes(8) + b"c"),
    }


TIMES = st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 150)), max_size=40)


@given(TIMES, st.lists(st.integers(1, 9), max_size=12))
def test_what_comes_out_does_not_depend_on_batches_nor_on_restarts(
    parts: list[tuple[str, int]], sizes: list[int]
) -> None:
    rows = at(*parts)
    whole = WindowHarness(TEN, grace_ms=25)
    expected = whole.put(rows)
    store = DictStore()
    told: dict[str, list[object]] = {}
    for row in rows:
        for name, some in WindowHarness(TEN, grace_ms=25, store=store).put([row]).items():
            told[name] = told.get(name, []) + some
    assert told == expected == WindowHarness(TEN, grace_ms=25).put(rows, sizes)
    assert isinstance(whole.store, DictStore)
    assert store.states == whole.store.states


@given(st.lists(st.integers(0, 300), min_size=1, max_size=30))
def test_with_grace_enough_sessions_are_those_of_the_sorted_times(times: list[int]) -> None:
    expected: list[tuple[str, int, int, int]] = []
    for time in sorted(times):
        if expected and time - expected[-1][2] <= 10:
            _, start, _, count = expected.pop()
            expected.append(("a", start, time, count + 1))
        else:
            expected.append(("a", time, time, 1))
    told = WindowHarness(TEN, grace_ms=1_000).put(at(*(("a", time) for time in times), ("z", 10_000)))
    assert told["final"] == expected
