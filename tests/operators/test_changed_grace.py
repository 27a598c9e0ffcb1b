"""What is told once stays told, whatever the grace is when a job starts again."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.operators.window_kit import OutputRow, WindowHarness, at
from twopc import Hopping, Session, Sliding, Tumbling
from twopc.testing.states import DictStore
from twopc.windows import Windows

FAR = 1_000_000

KINDS = [Tumbling("10ms"), Hopping("10ms", every="5ms"), Session("10ms"), Sliding("10ms")]

Run = tuple[int, list[tuple[str, int]]]
"""A grace, and the records that come while it is so."""


def of_runs(windows: Windows, *runs: Run) -> dict[str, list[OutputRow]]:
    """Return all that comes out while a job is started again and again, each time with the grace of its run."""
    store, every = DictStore(), dict[str, list[OutputRow]]()
    for grace_ms, records in runs:
        for name, told in WindowHarness(windows, grace_ms=grace_ms, store=store).put(at(*records)).items():
            every.setdefault(name, []).extend(told)
    return every


@pytest.mark.parametrize("windows", KINDS, ids=str)
def test_a_longer_grace_opens_no_window_that_was_told(windows: Windows) -> None:
    told = of_runs(windows, (0, [("a", 1), ("b", 40)]), (1_000, [("a", 2), ("c", FAR)]))
    assert [each for each in told["late"] if each[0] == "a"] == [("a", 1, 2)]
    assert {each[-1] for each in told["final"] if each[0] == "a"} == {1}


@pytest.mark.parametrize("windows", KINDS, ids=str)
def test_what_was_told_is_remembered_over_a_run_with_another_grace(windows: Windows) -> None:
    told = of_runs(windows, (0, [("a", 1), ("b", 40)]), (50, [("b", 41)]), (1_000, [("a", 2), ("c", FAR)]))
    assert [each for each in told["late"] if each[0] == "a"] == [("a", 1, 2)]


def test_a_longer_grace_holds_for_what_is_not_told() -> None:
    told = of_runs(Tumbling("10ms"), (5, [("a", 1), ("b", 14)]), (30, [("a", 2), ("b", 39), ("a", 3), ("b", 40)]))
    assert told["final"] == [("a", 0, 10, 3)]


RUNS = st.lists(
    st.tuples(
        st.sampled_from([0, 7, 30, 200]),
        st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 100)), min_size=1, max_size=8),
    ),
    min_size=2,
    max_size=5,
)


@given(windows=st.sampled_from(KINDS), runs=RUNS)
def test_no_window_is_told_twice_however_the_grace_changes(windows: Windows, runs: list[Run]) -> None:
    final = of_runs(windows, *runs, (0, [("c", FAR)])).get("final", [])
    counts = Counter((key, start, end) for key, start, end, _ in final)
    assert [window for window, times in counts.items() if times > 1] == []


@given(windows=st.sampled_from([Tumbling("10ms"), Session("10ms")]), runs=RUNS)
def test_a_record_is_in_one_window_or_late_however_the_grace_changes(windows: Windows, runs: list[Run]) -> None:
    told = of_runs(windows, *runs, (0, [("c", FAR)]), (0, [("d", 2 * FAR)]))
    counted = sum(count for *_, count in told["final"])
    assert counted + len(told.get("late", [])) == sum(len(records) for _, records in runs) + 1


def test_a_session_that_waits_for_a_longer_grace_of_before_is_told_once_though_it_grows() -> None:
    told = of_runs(Session("10ms"), (7, [("a", 1), ("a", 12)]), (0, [("a", 0), ("a", 0), ("b", 99)]))
    assert told["final"] == [("a", 0, 1, 2), ("a", 12, 12, 1)]
    assert [time for _, _, time in told["late"]] == [0]
