"""`twopc drill`: what it exits with, and how a drill that can't run says so."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from twopc import cli
from twopc.config import RunSettings
from twopc.drill.restore import RestorePlan
from twopc.drill.verdict import Check, DrillResult, Verdict
from twopc.errors import CheckpointCorrupted, ConfigurationError, Unavailable

HELD = Check("readable", Verdict.HELD, "it is complete")
BROKEN = Check("output", Verdict.BROKEN, "of the output: 1 lost", ("lost: out[0]@7",))

Outcome = Callable[[Exception | Check], None]


@pytest.fixture
def drill_finds(monkeypatch: pytest.MonkeyPatch) -> Outcome:
    """Makes every restore drill come to this."""

    def make(outcome: Exception | Check) -> None:
        def drilled(plan: RestorePlan, settings: RunSettings, **_: Any) -> DrillResult:
            if isinstance(outcome, Exception):
                raise outcome
            return DrillResult("restore", "orders", 0, 1.0, f"checkpoint {plan.restore_from}", (outcome,))

        monkeypatch.setattr("twopc.cli.drill.restore_drill", drilled)

    return make


def invoke(*arguments: str) -> Any:
    return CliRunner().invoke(cli.app, ["drill", "job.py", *arguments])


@pytest.mark.parametrize(("check", "code"), [(HELD, 0), (BROKEN, 1)], ids=["held", "broken"])
def test_the_exit_code_says_whether_all_held(drill_finds: Outcome, check: Check, code: int) -> None:
    drill_finds(check)
    answer = invoke("--from", "7")
    assert answer.exit_code == code
    assert "checkpoint 7" in answer.stdout


@pytest.mark.parametrize(
    "error",
    [ConfigurationError("no such job"), Unavailable("no broker"), CheckpointCorrupted("unread"), OSError("no disk")],
    ids=lambda error: type(error).__name__,
)
def test_a_drill_that_could_not_run_is_told_from_a_broken_promise(drill_finds: Outcome, error: Exception) -> None:
    drill_finds(error)
    answer = invoke()
    assert (answer.exit_code, answer.stdout) == (2, "")
    assert str(error) in answer.stderr


def test_json_and_the_reports_hold_the_same_checks(drill_finds: Outcome, tmp_path: Path) -> None:
    drill_finds(BROKEN)
    html, junit = tmp_path / "drill.html", tmp_path / "drill.xml"
    answer = invoke("-o", "json", "--html", str(html), "--junit", str(junit))
    assert json.loads(answer.stdout)["checks"][0]["findings"] == ["lost: out[0]@7"]
    assert all("lost: out[0]@7" in file.read_text() for file in (html, junit))


def test_a_remote_master_is_refused_before_anything_is_touched(tmp_path: Path) -> None:
    answer = invoke("-b", "127.0.0.1:1", "--master", "spark://host:7077", "--checkpoint-dir", str(tmp_path))
    assert answer.exit_code == 2
    assert "--host process" in answer.stderr
