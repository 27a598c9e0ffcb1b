"""Every run plays tests on both paths of records, and each test is played on both."""

from __future__ import annotations

import os

import pytest

from tests import record_paths
from tests.record_paths import DAYS, VARIABLE, choose, is_one_by_one
from twopc.kafka import native


@pytest.mark.parametrize("number", range(8))
def test_records_take_the_path_that_is_chosen_for_the_test(request: pytest.FixtureRequest, number: int) -> None:
    turned_off = os.environ.get(native.VARIABLE) == "0"
    assert (native.batches() is None) == turned_off
    if VARIABLE in os.environ:
        assert turned_off == is_one_by_one(request.node.nodeid)


@pytest.mark.parametrize("day", [0, 739_578])
@pytest.mark.parametrize("test", ["tests/a.py::test_b", "tests/a.py::test_c[1]"])
def test_one_of_four_days_that_follow_one_another_plays_a_test_one_by_one(
    monkeypatch: pytest.MonkeyPatch, test: str, day: int
) -> None:
    found = []
    for number in range(day, day + DAYS):
        monkeypatch.setenv(VARIABLE, str(number))
        found.append(is_one_by_one(test))
    assert sorted(found) == [False, False, False, True]


def test_a_day_plays_a_quarter_of_the_tests_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "739578")
    assert 80 < sum(is_one_by_one(f"tests/a.py::test_b[{number}]") for number in range(400)) < 120


def test_a_path_that_was_chosen_is_every_tests(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.setenv(native.VARIABLE, "1")
    choose()
    assert not any(is_one_by_one(f"tests/a.py::test_b[{number}]") for number in range(DAYS))


def test_where_nothing_was_built_no_test_asks_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    # Set first: what is deleted here is put back, or away, behind the test.
    monkeypatch.setenv(native.VARIABLE, "1")
    monkeypatch.delenv(native.VARIABLE)
    monkeypatch.setattr(record_paths, "BATCHES", "twopc.nothing")
    choose()
    assert (os.environ[native.VARIABLE], VARIABLE in os.environ) == ("0", False)
