"""The command goes through all tiers, and its last lines say what came of each."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Self

import pytest

from scripts.tiers import __main__ as command
from scripts.tiers.claims import claimed
from scripts.tiers.leftovers import Leftover
from scripts.tiers.results import Results
from scripts.tiers.run import TierResult, Wait
from scripts.tiers.tier import TIERS, Extent, Tier


class Scope:
    """Stands in for the scope of a run: these tests start nothing."""

    wait: Wait = subprocess.Popen.wait

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def sweep(self) -> list[Leftover]:
        return []


@pytest.fixture(autouse=True)
def results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder of results, which is not the one of the run that these tests are a part of."""
    before = signal.getsignal(signal.SIGTERM)
    monkeypatch.setattr(command, "ROOT", tmp_path)
    monkeypatch.setattr(command, "FOLDER", tmp_path / ".test-results")
    monkeypatch.setattr(command, "RunScope", Scope)
    yield tmp_path / ".test-results"
    signal.signal(signal.SIGTERM, before)


@pytest.fixture
def played(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Stands in for playing; holds the names of the tiers that were played. The one of brokers fails."""
    names: list[str] = []

    def play(tier: Tier, *_: object) -> TierResult:
        names.append(tier.name)
        problem, failed = ("1 failed", ["tests/test_a.py::test_b"]) if tier.name == "broker" else ("", [])
        return TierResult(tier.name, 61.0, Results(3, 1, {}), failed=failed, problem=problem)

    monkeypatch.setattr(command, "run_tier", play)
    return names


def test_all_tiers_run_also_after_one_that_failed(played: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    names = [tier.name for tier in TIERS]
    assert command.main(["test", *names]) == 1
    assert played == names
    lines = capsys.readouterr().out.splitlines()
    assert "broker         1:01  1 failed      3 passed, 1 skipped" in lines
    assert "FAILED tests/test_a.py::test_b" in lines
    assert lines[-1].startswith("make test: FAILED: broker (1 failed) in ")


def test_tiers_that_are_named_run_alone(played: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["proof", "quick", "drill"]) == 0
    assert played == ["quick", "drill"]
    assert capsys.readouterr().out.splitlines()[-1].startswith("make proof: passed in ")


def test_an_unknown_tier_is_refused_with_those_that_there_are(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        command.main(["test", "quik"])
    assert "there is no tier 'quik': take check, quick, simulation, broker, drill, spark" in capsys.readouterr().err


def test_a_flaky_test_is_named_in_the_last_lines_with_the_file_that_has_its_text() -> None:
    result = TierResult("drill", 5.0, Results(1, 0, {}), flaky=["tests/test_a.py::test_b"])
    lines = command.summary(Extent.CHANGE, [result], 5.0).splitlines()
    assert lines[-2] == (
        "flaky: tests/test_a.py::test_b failed once and passed by itself; "
        "its first text is in .test-results/drill/flaky.txt"
    )
    assert lines[-1] == "make test: passed in 0:05"


def test_ctrl_c_ends_the_run_with_130(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> TierResult:
        raise KeyboardInterrupt

    monkeypatch.setattr(command, "run_tier", interrupted)
    assert command.main(["test", "quick"]) == 130


def test_what_outlived_its_tier_is_named_with_the_test_that_started_it() -> None:
    left = Leftover(17, "sleep 600", "tests/test_a.py::test_b")
    result = TierResult("drill", 5.0, Results(1, 0, {}), left=[left])
    lines = command.summary(Extent.CHANGE, [result], 5.0).splitlines()
    assert lines[-2] == ("outlived the tier drill, ended by the run: process 17 of tests/test_a.py::test_b: sleep 600")


def test_a_run_is_refused_while_another_one_plays_a_tier_of_it_in_the_same_checkout(
    played: list[str], results: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with claimed(["drill"], results):
        assert command.main(["test", "quick"]) == 0
        assert command.main(["test", "quick", "drill"]) == 2
    assert played == ["quick"]
    assert f"tests: process {os.getpid()} plays the tier drill in this checkout" in capsys.readouterr().err
    assert command.main(["test", "drill", "drill"]) == 0
