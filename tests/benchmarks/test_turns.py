"""Seconds with and without checkpoints, in turns: when one is taken, and what is compared with what."""

from __future__ import annotations

import pytest
from in_turns import ratios
from turns import in_turn


@pytest.mark.parametrize("due", [1.0, 1.5, 1.999, 3.25])
def test_in_a_second_that_has_checkpoints_they_are_taken_when_they_are_due(due: float) -> None:
    assert in_turn(due) == due


@pytest.mark.parametrize("due", [2.0, 2.5, 2.999])
def test_in_another_second_they_wait_for_the_next(due: float) -> None:
    assert in_turn(due) == 3.0


def test_a_second_with_checkpoints_is_compared_with_the_mean_of_those_beside_it() -> None:
    assert ratios({2: 100.0, 3: 90.0, 4: 140.0}) == [90 / 120]


def test_a_second_without_neighbours_or_beside_one_in_which_nothing_was_written_says_nothing() -> None:
    assert ratios({3: 90.0, 4: 100.0, 5: 80.0, 6: 0.0}) == []
