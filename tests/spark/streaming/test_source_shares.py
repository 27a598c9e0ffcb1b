"""How a batch that may not take all divides what it takes among partitions."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from twopc.spark.streaming.source_shares import shares


def test_what_fits_is_taken_whole() -> None:
    assert shares({"a": 3, "b": 0, "c": 2}, 5) == {"a": 3, "b": 0, "c": 2}


def test_what_does_not_fit_is_taken_in_proportion() -> None:
    assert shares({"a": 300, "b": 100, "c": 0}, 40) == {"a": 30, "b": 10, "c": 0}


def test_a_batch_of_one_offset_makes_progress() -> None:
    assert sum(shares({"a": 7, "b": 9}, 1).values()) == 1


@given(st.dictionaries(st.integers(), st.integers(0, 10**12)), st.integers(1, 10**9))
def test_as_much_is_taken_as_may_be_and_never_more_than_is_there(behind: dict[int, int], most: int) -> None:
    taken = shares(behind, most)
    assert taken.keys() == behind.keys()
    assert sum(taken.values()) == min(most, sum(behind.values()))
    assert all(0 <= taken[each] <= behind[each] for each in behind)
