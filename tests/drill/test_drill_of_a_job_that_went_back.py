"""A restore drill of a checkpoint that the job was set back to: what readers have seen twice is not passed.

The job stood still when the checkpoint was taken, so that no output of its own says where it stands.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.jobs.cli import CommandResult, twopc
from twopc.checkpoints.catalog import read_job
from twopc.storage.local import LocalStore
from twopc.testing.broker import Broker
from twopc.testing.topics import Write, create_topic, produce, read_topic

pytestmark = pytest.mark.broker

JOB_FILE = str(Path(__file__).with_name("drilled_job.py"))
RECORDS, KEYS = 500, 7


class Job:
    """A job that counts, its topics, and what is done with it."""

    def __init__(self, broker: Broker, folder: Path) -> None:
        self.name = f"back-{uuid.uuid4().hex[:6]}"
        self.servers = broker.bootstrap_servers
        self.checkpoints = folder / "checkpoints"
        self.where = ("-b", self.servers, "--host", "process", "-p", "2", "--checkpoint-dir", str(self.checkpoints))
        for suffix in ("in", "out"):
            create_topic(self.servers, f"{self.name}-{suffix}", 2)

    def fill(self, first: int) -> None:
        values = range(first, first + RECORDS)
        produce(self.servers, f"{self.name}-in", [Write(b"%d" % n, key=b"k%d" % (n % KEYS)) for n in values])

    def run(self, *more: str) -> None:
        often = ("--checkpoint-interval", "200ms")
        ran = twopc("run", JOB_FILE, *self.where, *often, "--until-end", *more, DRILLED_JOB=self.name)
        assert ran.code == 0, ran.err

    def run_to_savepoint(self) -> int:
        """Run until all is read and nothing has happened for a while, and stop with a savepoint."""
        command = [sys.executable, "-m", "twopc", "run", JOB_FILE, *self.where, "--checkpoint-interval", "200ms"]
        with subprocess.Popen(command, env=os.environ | {"DRILLED_JOB": self.name}) as running:
            try:
                deadline = time.monotonic() + 240
                while self.written() < RECORDS:
                    assert time.monotonic() < deadline, "the job did not read its input"
                    time.sleep(0.5)
                time.sleep(2)
                stopped = twopc("stop", self.name, "--savepoint", "--checkpoint-dir", str(self.checkpoints))
                assert stopped.code == 0, stopped.err
                assert running.wait(240) == 0
            finally:
                running.kill()
        return self.newest()

    def newest(self) -> int:
        return read_job(LocalStore(self.checkpoints), self.name).completed[-1].checkpoint_id

    def written(self) -> int:
        return len(read_topic(self.servers, f"{self.name}-out"))

    def drill(self, checkpoint_id: int) -> CommandResult:
        return twopc("drill", JOB_FILE, *self.where, "--from", str(checkpoint_id), "-o", "json", DRILLED_JOB=self.name)


@pytest.fixture
def job(broker: Broker, tmp_path: Path) -> Job:
    return Job(broker, tmp_path)


def output_of(drilled: CommandResult) -> Mapping[str, Any]:
    assert drilled.out, drilled.err
    [output] = [each for each in json.loads(drilled.out)["checks"] if each["name"] == "output"]
    assert isinstance(output, dict)
    return output


@pytest.mark.proof
def test_what_readers_have_seen_twice_is_found_where_the_checkpoints_between_are_kept(job: Job) -> None:
    job.fill(0)
    job.run("--checkpoints-retained", "50")
    job.run("--checkpoints-retained", "50")
    chosen = job.newest()
    job.fill(RECORDS)
    job.run("--checkpoints-retained", "50")
    job.run("--checkpoints-retained", "50", "--from", str(chosen))
    assert job.written() == 3 * RECORDS
    drilled = job.drill(chosen)
    assert (drilled.code, output_of(drilled)["verdict"]) == (1, "broken"), drilled.out


@pytest.mark.proof
def test_of_a_savepoint_it_is_found_or_said_that_it_can_not_be_told(job: Job) -> None:
    job.fill(0)
    chosen = job.run_to_savepoint()
    job.fill(RECORDS)
    job.run()
    job.run("--from", str(chosen))
    assert job.written() == 3 * RECORDS
    output = output_of(job.drill(chosen))
    assert output["verdict"] in ("broken", "not judged"), output


@pytest.mark.proof
def test_of_a_savepoint_from_which_the_job_just_went_on_all_holds(job: Job) -> None:
    job.fill(0)
    chosen = job.run_to_savepoint()
    job.fill(RECORDS)
    job.run()
    drilled = job.drill(chosen)
    assert (drilled.code, output_of(drilled)["verdict"]) == (0, "held"), drilled.out
    assert f"{RECORDS} records of {job.name}-out" in output_of(drilled)["text"]
