from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twopc.column import ColumnError, code_column, map_column
from twopc.serde.ahead import code_ahead
from twopc.testing.rows import InputRow

BAD, UNUSUAL = -1, -2
COLUMNS = st.lists(st.none() | st.just(7) | st.integers(0, 9) | st.sampled_from([BAD, UNUSUAL]), max_size=200)


class Doubled:
    """Doubles numbers: none that is bad, and one that is unusual only by itself; counts what it was given."""

    def __init__(self) -> None:
        self.given = 0

    def ahead(self, column: list[Any], start: int) -> list[Any]:
        results: list[Any] = []
        for number in column[start:]:
            self.given += 1
            if number is not None and number < 0:
                break
            results.append(None if number is None else 2 * number)
        return results

    def single(self, number: int | None) -> int | None:
        self.given += 1
        if number == BAD:
            raise ValueError("bad")
        return None if number is None else 2 * number

    def __call__(self, column: list[Any]) -> list[Any]:
        return code_ahead(self.ahead, self.single, column)


@given(COLUMNS)
def test_what_comes_of_a_column_is_what_comes_of_each_element(column: list[Any]) -> None:
    rows = [InputRow(each) for each in column]
    results, failures = code_column(Doubled(), column, rows, "doubling")
    expected, expected_failures = code_column(lambda some: map_column(Doubled().single, some), column, rows, "doubling")
    assert results == expected
    assert failures.keys() == expected_failures.keys()


@pytest.mark.parametrize("method", [tuple, lambda column: dict.fromkeys(range(len(column)))], ids=["tuple", "dict"])
def test_what_a_serde_returns_for_a_column_is_a_list_from_there_on(method: Any) -> None:
    results, failures = code_column(method, [0, 1], [InputRow(0), InputRow(1)], "reading")
    assert (results, failures) == ([0, 1], {})


def test_the_element_that_failed_is_named_with_the_results_before_it() -> None:
    with pytest.raises(ColumnError, match="bad") as caught:
        Doubled()([1] * 100 + [BAD, 1])
    assert caught.value.index == 100
    assert caught.value.results == [2] * 100


@pytest.mark.parametrize("element", [BAD, UNUSUAL])
def test_an_element_that_is_not_taken_costs_itself_twice_however_many_there_are(element: int) -> None:
    doubled, column = Doubled(), [element] * 500
    code_column(doubled, column, [InputRow(each) for each in column], "doubling")
    assert doubled.given <= 2 * 500


def test_a_column_that_is_taken_whole_is_taken_once() -> None:
    doubled = Doubled()
    assert doubled([1, None] * 500) == [2, None] * 500
    assert doubled.given == 1000
