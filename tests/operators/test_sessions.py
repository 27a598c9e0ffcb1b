"""Sessions: what belongs together, what makes one of two, when one is over."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.operators.test_windows import values
from tests.operators.window_kit import WindowHarness, at
from twopc import ConfigurationError, Json, Session
from twopc.operators.window_step import Aggregate, Reduce
from twopc.state.forms import SessionsOf
from twopc.state.layout import StateName
from twopc.testing.states import DictStore

TEN = Session(gap="10ms")


def test_records_at_most_a_gap_apart_are_one_session_from_its_first_to_its_last() -> None:
    told = WindowHarness(TEN).put(at(("a", 0), ("a", 10), ("a", 21), ("a", 25), ("b", 99)))
    assert told["final"] == [("a", 0, 10, 2), ("a", 21, 25, 2)]


def test_a_session_is_over_when_stream_time_is_more_than_gap_and_grace_behind_its_last_record() -> None:
    windowed = WindowHarness(TEN, grace_ms=5)
    assert "final" not in windowed.put(at(("a", 0), ("b", 15)))
    assert windowed.put(at(("b", 16)))["final"] == [("a", 0, 0, 1)]
    assert windowed.put(at(("a", 0), ("a", 11)))["current"] == [("a", 11, 11, 1)]


def test_a_record_at_most_a_gap_behind_a_session_that_is_over_is_late() -> None:
    windowed = WindowHarness(TEN, grace_ms=5)
    windowed.put(at(("a", 0), ("b", 16)))
    assert windowed.put(at(("a", 1), ("a", 10), ("a", 21), ("a", 10), ("a", 11))) == {
        "late": [("a", 1, 1), ("a", 1, 10), ("a", 1, 10)],
        "current": [("a", 21, 21, 1), ("a", 11, 21, 2)],
    }


def test_what_a_session_is_compared_with_is_kept_as_long_as_it_matters_and_is_no_window() -> None:
    store = DictStore()
    windowed = WindowHarness(TEN, store=store)
    windowed.put(at(("a", 0), ("b", 11)))
    assert SessionsOf(Json()).deserialize(store.states[StateName("op", "op"), 0, b"a"]) == []
    windowed.put(at(("b", 20)))
    assert (StateName("op", "op"), 0, b"a") in store.states
    windowed.put(at(("b", 21)))
    assert (StateName("op", "op"), 0, b"a") not in store.states


def test_a_record_between_two_sessions_makes_one_of_them() -> None:
    told = WindowHarness(TEN, grace_ms=50).put(at(("a", 0), ("a", 20), ("a", 10), ("b", 500)))
    assert told["current"][:3] == [("a", 0, 0, 1), ("a", 20, 20, 1), ("a", 0, 20, 3)]
    assert told["final"] == [("a", 0, 20, 3)]


def test_a_record_before_a_session_moves_its_start() -> None:
    told = WindowHarness(TEN, grace_ms=50).put(at(("a", 20), ("a", 12), ("b", 500)))
    assert told["final"] == [("a", 12, 20, 2)]


@pytest.mark.parametrize("back", [(21, 11, 1), (1_000, *range(990, 0, -10))])
def test_a_session_does_not_grow_back_to_one_that_is_over_and_forgotten(back: tuple[int, ...]) -> None:
    told = WindowHarness(TEN).put(at(("a", 0), *(("a", time) for time in back), ("b", 5_000)))
    (first, second), late = told["final"], told["late"]
    assert (first[1:3], second[2] - second[1], late[-1]) == ((0, 0), 10, ("a", 1, back[-1]))


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
        ("$open-windows", b""),
        ("op", b"c"),
        ("$timers", (2**63 + 110).to_bytes(8) + b"c"),
    }


def test_what_is_remembered_of_a_session_that_is_over_is_no_open_window() -> None:
    sessions = WindowHarness(TEN)
    sessions.put(at(("a", 0), ("b", 12)))
    operator = sessions.flow.timed._operators["op"]
    assert operator.open_windows(0) == 1


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


@given(TIMES, st.integers(0, 30))
def test_what_is_final_of_a_key_is_more_than_a_gap_apart(parts: list[tuple[str, int]], grace_ms: int) -> None:
    told = WindowHarness(TEN, grace_ms=grace_ms).put(at(*parts, ("z", 10_000)))
    for name in "ab":
        sessions = sorted((start, end) for key, start, end, _ in told.get("final", []) if key == name)
        assert all(later - end > 10 for (_, end), (later, _) in pairwise(sessions))
    assert len(parts) == sum(count for *_, count in told.get("final", [])) + len(told.get("late", []))


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
