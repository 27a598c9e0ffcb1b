"""`twopc jobs history`, of what a coordinator has left in a folder."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tests.stored_job import JOB, TRIGGERED_MS, StoredJob
from twopc import cli
from twopc.errors import ConfigurationError


def history(folder: Path, *options: str) -> str:
    command = ["jobs", "history", JOB, "--checkpoint-dir", str(folder), *options]
    answer = CliRunner().invoke(cli.app, command, catch_exceptions=False)
    assert answer.exit_code == 0
    return answer.stdout


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    job = StoredJob(tmp_path / "checkpoints")
    job.checkpoint()
    job.end()
    job.start(restored=1)
    return job.root


def test_it_is_told_what_became_of_checkpoints_and_attempts(folder: Path) -> None:
    told = json.loads(history(folder, "-o", "json"))
    assert told["job"] == JOB
    assert [(each["attempt"], each["outcome"], each["restored"]) for each in told["attempts"]] == [
        (1, "finished", 0),
        (2, "running", 1),
    ]
    (checkpoint,) = told["checkpoints"]
    assert (checkpoint["checkpoint_id"], checkpoint["outcome"]) == (1, "completed")
    assert checkpoint["ended_ms"] == TRIGGERED_MS + 250


def test_a_person_sees_how_long_each_took(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "300")
    told = history(folder)
    assert "250 ms" in told
    assert "finished" in told


def test_a_job_that_is_not_there_is_named(folder: Path) -> None:
    with pytest.raises(ConfigurationError, match="no job 'others'"):
        CliRunner().invoke(
            cli.app, ["jobs", "history", "others", "--checkpoint-dir", str(folder)], catch_exceptions=False
        )
