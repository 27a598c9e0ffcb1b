"""Calls side by side: in order, bounded, and ended before an error is told."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pytest

from twopc.storage.transfers import side_by_side


@pytest.mark.parametrize("at_once", [1, 2, 5])
def test_results_come_in_the_order_of_the_items(at_once: int) -> None:
    def work(number: int) -> int:
        time.sleep(0.002 * (number % 3))
        return number * number

    assert list(side_by_side(work, range(20), at_once)) == [number * number for number in range(20)]


def test_so_many_are_in_work_at_once() -> None:
    together = threading.Barrier(3)
    assert list(side_by_side(lambda _: together.wait(60) >= 0, range(6), 3)) == [True] * 6


def test_calls_that_were_begun_have_ended_when_an_error_is_raised() -> None:
    ended: list[int] = []

    def work(number: int) -> None:
        if number == 0:
            raise OSError("simulated")
        time.sleep(0.05)
        ended.append(number)

    with pytest.raises(OSError, match="simulated"):
        list(side_by_side(work, range(100), 4))
    assert sorted(ended) == [1, 2, 3]


def test_an_error_of_what_gives_the_items_is_raised_after_what_was_begun() -> None:
    ended: list[int] = []

    def items() -> Iterator[int]:
        yield 1
        yield 2
        raise OSError("simulated")

    with pytest.raises(OSError, match="simulated"):
        list(side_by_side(ended.append, items(), 4))
    assert sorted(ended) == [1, 2]
