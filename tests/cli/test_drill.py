"""`twopc drill`: what it exits with, and how a drill that can't run says so."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from twopc import cli
from twopc.config import RunSettings
from twopc.drill.fault_drill_plan import FaultDrillPlan
from twopc.drill.load import Load
from twopc.drill.restore import RestorePlan
from twopc.drill.verdict import Check, CheckVerdict, DrillResult
from twopc.errors import CheckpointCorrupted, ConfigurationError, Unavailable

HELD = Check("readable", CheckVerdict.HELD, "it is complete")
BROKEN = Check("output", CheckVerdict.BROKEN, "of the output: 1 lost", ("lost: out[0]@7",))

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


def test_with_faults_the_seed_and_the_load_are_what_was_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[FaultDrillPlan] = []

    def drilled(plan: FaultDrillPlan, settings: RunSettings, **_: Any) -> DrillResult:
        asked.append(plan)
        return DrillResult("fault", "orders", 0, 1.0, f"seed {plan.seed}", (HELD,))

    monkeypatch.setattr("twopc.cli.drill.fault_drill", drilled)
    answer = invoke("--faults", "3", "--seed", "7", "--records", "2000", "-p", "4")
    assert (answer.exit_code, asked) == (0, [FaultDrillPlan("job.py", 3, 7, Load(records=2_000), 4)])


def test_a_seed_that_nobody_chose_is_told_so_that_the_plan_can_be_played_again(monkeypatch: pytest.MonkeyPatch) -> None:
    def drilled(plan: FaultDrillPlan, settings: RunSettings, **_: Any) -> DrillResult:
        return DrillResult("fault", "orders", 0, 1.0, f"seed {plan.seed}", (BROKEN,))

    monkeypatch.setattr("twopc.cli.drill.fault_drill", drilled)
    answer = invoke("--faults", "3")
    (seed,) = re.findall(r"seed (\d+): the same", answer.stderr)
    assert f"seed {seed}" in answer.stdout


@pytest.mark.parametrize(
    "arguments",
    [
        ("--faults", "-1"),
        ("--faults", "1", "-p", "0"),
        ("--faults", "1", "--copy"),
        ("--faults", "1", "--copy", "--sample", "x"),
        ("--against", "other.py", "--faults", "1"),
        ("--against", "other.py", "--max-recovery", "10s"),
    ],
    ids=" ".join,
)
def test_what_cannot_be_meant_is_no_broken_promise(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    job = tmp_path / "job.py"
    job.write_text(
        "from twopc import Job, KafkaSink, KafkaSource\n"
        "job = Job('j')\njob.source(KafkaSource('a')).sink(KafkaSink('b'))\n"
    )
    answer = CliRunner().invoke(cli.app, ["drill", str(job), *arguments])
    assert answer.exit_code == 2
    assert answer.stderr.splitlines()[-1].startswith("error: --")


def test_json_and_junit_hold_the_same_checks(drill_finds: Outcome, tmp_path: Path) -> None:
    drill_finds(BROKEN)
    junit = tmp_path / "drill.xml"
    answer = invoke("-o", "json", "--junit", str(junit))
    assert json.loads(answer.stdout)["checks"][0]["findings"] == ["lost: out[0]@7"]
    assert "lost: out[0]@7" in junit.read_text()


def test_a_version_that_is_not_there_is_named_and_leaves_no_report_but_of_that(tmp_path: Path) -> None:
    junit, job, other = tmp_path / "drill.xml", tmp_path / "job.py", tmp_path / "new.py"
    job.write_text(
        "from twopc import Job, KafkaSink, KafkaSource\n"
        "job = Job('j')\njob.source(KafkaSource('a')).sink(KafkaSink('b'))\n"
    )
    options = ("-b", "127.0.0.1:1", "-o", "json", "--junit", str(junit))
    answer = CliRunner().invoke(cli.app, ["drill", str(job), "--against", str(other), *options])
    told = json.loads(answer.stdout)
    assert (answer.exit_code, told["drill"], told["error"]) == (2, "version", f"there is no job file {other}")
    assert 'classname="version" name="the drill runs"' in junit.read_text()


def test_a_remote_master_is_refused_before_anything_is_touched(tmp_path: Path) -> None:
    answer = invoke("-b", "127.0.0.1:1", "--master", "spark://host:7077", "--checkpoint-dir", str(tmp_path))
    assert answer.exit_code == 2
    assert "--host process" in answer.stderr


def test_a_drill_that_could_not_run_leaves_no_report_of_an_earlier_one(drill_finds: Outcome, tmp_path: Path) -> None:
    junit = tmp_path / "drill.xml"
    junit.write_text("all held, in June")
    drill_finds(Unavailable("no broker"))
    assert invoke("--junit", str(junit)).exit_code == 2
    assert 'errors="1"' in junit.read_text()
    assert "no broker" in junit.read_text()


def test_a_drill_that_could_not_run_answers_a_script_as_well(drill_finds: Outcome) -> None:
    drill_finds(Unavailable("no broker"))
    answer = invoke("-o", "json")
    assert json.loads(answer.stdout) == {"drill": "restore", "held": False, "exit_code": 2, "error": "no broker"}


def test_states_and_inputs_can_be_left_behind_as_in_a_run(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[RunSettings] = []

    def drilled(plan: RestorePlan, settings: RunSettings, **_: Any) -> DrillResult:
        asked.append(settings)
        return DrillResult("restore", "orders", 0, 1.0, "", (HELD,))

    monkeypatch.setattr("twopc.cli.drill.restore_drill", drilled)
    invoke("--drop-states", "seen,last", "--drop-inputs", "old")
    assert (asked[0].drop_states, asked[0].drop_inputs) == (("seen", "last"), ("old",))


def test_how_long_a_recovery_may_take_is_asked_for_with_its_unit(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[RestorePlan] = []

    def drilled(plan: RestorePlan, settings: RunSettings, **_: Any) -> DrillResult:
        asked.append(plan)
        return DrillResult("restore", "orders", 0, 1.0, "", (HELD,))

    monkeypatch.setattr("twopc.cli.drill.restore_drill", drilled)
    invoke("--max-recovery", "10s")
    assert asked[0].max_recovery_seconds == 10
    assert "--max-recovery" in invoke("--max-recovery", "10").stderr


def test_the_report_says_when_it_was(drill_finds: Outcome) -> None:
    drill_finds(HELD)
    assert "began 1970-01-01T00:00:00+00:00" in invoke().stdout
    assert json.loads(invoke("-o", "json").stdout)["began"] == "1970-01-01T00:00:00+00:00"
