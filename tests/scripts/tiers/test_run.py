"""A tier is played with a real pytest, on a folder of small tests."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from scripts.tiers.results import FAILED_FILE, failed_tests
from scripts.tiers.run import MOST_BY_CHANCE, run_tier
from scripts.tiers.tier import Extent, Tier

SETTINGS = "[pytest]\nmarkers =\n    proof: not for every change\n"
FLAKY = """
from pathlib import Path

def test_that_fails_the_first_time():
    seen = Path("seen")
    was_there = seen.exists()
    seen.touch()
    assert was_there, "the broker was slow"
"""
PASSES = "def test_that_passes():\n    pass\n"
FAILS = "def test_that_fails():\n    assert False, 'always'\n"
OF_A_RELEASE = "import pytest\n\n@pytest.mark.proof\ndef test_of_a_release():\n    assert False\n"

PURE = Tier("pure", "not drill", 0)
WITH_PROCESSES = Tier("real", "not drill", 0, starts_processes=True)


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with settings of pytest's own and no tests."""
    (tmp_path / "pytest.ini").write_text(SETTINGS.replace("proof:", "drill: real processes\n    proof:"))
    monkeypatch.chdir(tmp_path)
    for variable in ("PYTEST_ADDOPTS", "PYTEST_XDIST_WORKER", "PYTEST_XDIST_WORKER_COUNT"):
        monkeypatch.delenv(variable, raising=False)
    return tmp_path


def test_a_tier_that_passes_has_no_problem_and_counts_its_tests(project: Path) -> None:
    (project / "test_it.py").write_text(PASSES)
    result = run_tier(PURE, Extent.CHANGE, project / "results")
    assert (result.problem, result.results.passed, result.failed, result.flaky) == ("", 1, [], [])


def test_a_test_that_fails_by_chance_is_named_with_its_first_text_and_does_not_fail_the_tier(project: Path) -> None:
    (project / "test_it.py").write_text(FLAKY + PASSES)
    result = run_tier(WITH_PROCESSES, Extent.CHANGE, project / "results")
    assert (result.problem, result.failed) == ("", [])
    assert result.flaky == ["test_it.py::test_that_fails_the_first_time"]
    assert "the broker was slow" in (project / "results" / "flaky.txt").read_text()


def test_a_test_that_fails_twice_fails_its_tier_though_another_was_flaky(project: Path) -> None:
    (project / "test_it.py").write_text(FLAKY + FAILS)
    result = run_tier(WITH_PROCESSES, Extent.CHANGE, project / "results")
    assert result.problem == "1 failed"
    assert result.failed == ["test_it.py::test_that_fails"]
    assert result.flaky == ["test_it.py::test_that_fails_the_first_time"]


@pytest.mark.proof
def test_a_tier_without_processes_plays_nothing_twice(project: Path) -> None:
    (project / "test_it.py").write_text(FLAKY)
    assert run_tier(PURE, Extent.CHANGE, project / "results").problem == "1 failed"


@pytest.mark.proof
def test_more_failures_than_chance_brings_are_not_played_again(project: Path) -> None:
    numbers = f"@pytest.mark.parametrize('number', range({MOST_BY_CHANCE + 1}))\ndef"
    flaky = FLAKY.replace("def", numbers).replace("time():", "time(number):").replace('"seen"', "str(number)")
    (project / "test_it.py").write_text(f"import pytest\n{flaky}")
    assert run_tier(WITH_PROCESSES, Extent.CHANGE, project / "results").problem == f"{MOST_BY_CHANCE + 1} failed"


@pytest.mark.proof
def test_a_module_that_can_not_be_imported_is_a_problem(project: Path) -> None:
    (project / "test_it.py").write_text("import nowhere_to_be_found\n")
    assert run_tier(WITH_PROCESSES, Extent.CHANGE, project / "results").problem


@pytest.mark.proof
def test_a_tier_without_tests_is_a_problem(project: Path) -> None:
    assert run_tier(PURE, Extent.CHANGE, project / "results").problem == "pytest ended with 5"


def test_what_guards_a_release_is_left_out_for_a_change_and_played_for_a_release(project: Path) -> None:
    (project / "test_it.py").write_text(OF_A_RELEASE)
    (project / "test_other.py").write_text(PASSES)
    assert run_tier(PURE, Extent.CHANGE, project / "results").problem == ""
    assert run_tier(PURE, Extent.RELEASE, project / "results").problem == "1 failed"


@pytest.mark.parametrize(
    ("reported", "named"),
    [
        ("a.py::b", "a.py::b"),
        ("a.py::b@group", "a.py::b"),
        ("a.py::b[x@y]", "a.py::b[x@y]"),
        ("a.py::b[x]@g", "a.py::b[x]"),
    ],
)
def test_the_group_of_a_test_is_no_part_of_its_id(tmp_path: Path, reported: str, named: str) -> None:
    file = tmp_path / FAILED_FILE
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps({reported: True}))
    assert failed_tests(tmp_path) == [named]
