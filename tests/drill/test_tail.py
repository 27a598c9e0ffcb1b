from __future__ import annotations

import pytest

from twopc.drill.output_comparison import begins_at


@pytest.mark.parametrize(
    ("expected", "required", "found", "begins"),
    [
        pytest.param([4, 5, 6], 3, [1, 2, 3, 4, 5, 6], 3, id="all of it is there"),
        pytest.param([4, 5, 6], 1, [1, 2, 3, 4, 5], 3, id="a part is not visible yet"),
        pytest.param([4, 5, 6], 0, [1, 2, 3], 3, id="nothing is visible yet"),
        pytest.param([4, 5, 6], 3, [4, 5, 6], 0, id="nothing stood there before"),
        pytest.param([], 0, [1, 2, 3], 3, id="nothing is expected"),
        pytest.param([1, 1], 2, [1, 1, 1, 1], 2, id="values that repeat"),
        pytest.param([4, 5, 6], 3, [], 0, id="nothing is there at all"),
    ],
)
def test_the_output_since_the_checkpoint_is_the_end_of_what_is_there(
    expected: list[int], required: int, found: list[int], begins: int
) -> None:
    assert begins_at(expected, required, found) == begins


@pytest.mark.parametrize(
    ("found", "begins"),
    [
        pytest.param([1, 2, 3, 4, 6], 3, id="lost in the middle"),
        pytest.param([1, 2, 3, 4, 5, 5, 6], 3, id="doubled in the middle"),
        pytest.param([1, 2, 3, 5, 6], 3, id="the first is lost"),
        pytest.param([1, 2, 3, 4, 5], 3, id="the last is lost, and required"),
    ],
)
def test_of_a_wrong_output_the_part_that_is_likely_the_expected_one_is_judged(found: list[int], begins: int) -> None:
    assert begins_at([4, 5, 6], 3, found) == begins


def test_where_nothing_fits_everything_expected_is_lost() -> None:
    assert begins_at([4, 5, 6], 3, [1, 2, 3]) == 3
