"""A fault drill of a job that can't take the records that are made up for it ends at once, and says what to give it."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.jobs.cli import CommandResult, twopc
from twopc.testing.broker import Broker

pytestmark = pytest.mark.broker

JOB = """
from twopc import Job, KafkaSink, KafkaSource


def pick(value):
    return b"%d" % (int(value) + 1)


job = Job("picky")
job.source(KafkaSource("picky-in")).map(pick).sink(KafkaSink("picky-out"))
"""


def drill(broker: Broker, folder: Path, *more: str) -> CommandResult:
    (folder / "picky.py").write_text(JOB)
    (folder / "scratch").mkdir(exist_ok=True)
    return twopc(
        *("drill", str(folder / "picky.py"), "-b", broker.bootstrap_servers, "--faults", "1", "--seed", "3"),
        *("--scratch-dir", str(folder / "scratch"), "--records", "1000", "-o", "json", *more),
    )


def test_it_names_the_record_and_the_option_before_any_process_is_started(broker: Broker, tmp_path: Path) -> None:
    done = drill(broker, tmp_path)
    assert done.code == 2, done.out + done.err
    error = json.loads(done.out)["error"]
    assert "--sample FILE" in error
    assert "invalid literal for int()" in error
    assert "finished:" not in done.err, "it did not run"
    assert os.listdir(tmp_path / "scratch") == []


@pytest.mark.proof
def test_with_values_of_its_own_it_runs(broker: Broker, tmp_path: Path) -> None:
    values = tmp_path / "values.txt"
    values.write_text("".join(f"{n}\n" for n in range(100)))
    done = drill(broker, tmp_path, "--sample", str(values))
    assert done.code == 0, done.out + done.err
