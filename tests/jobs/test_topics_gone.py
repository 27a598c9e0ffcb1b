"""Topics that are deleted, or deleted and created again, while a job runs: it ends, says so, and nothing is skipped."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

from tests.jobs.cli import CommandResult
from tests.kafka.kit import eventually, values_of
from twopc.errors import ConfigurationError
from twopc.kafka.clients.control_client import ControlClient
from twopc.testing.broker import Broker
from twopc.testing.topics import create_topic, delete_topic, produce

pytestmark = pytest.mark.broker

JOB = """
from twopc import Job, KafkaSink, KafkaSource

job = Job("{name}")
job.source(KafkaSource("{name}-in")).map(bytes.upper).sink(KafkaSink("{name}-out"))
"""

END_SECONDS = 100.0
"""Within which the job must end: well below what a record may wait to be delivered, for a slow machine."""


@dataclass
class RunningJob:
    """One job from `NAME-in` to `NAME-out`, as a command in a process of its own."""

    servers: str
    name: str
    folder: Path

    @property
    def input(self) -> str:
        return f"{self.name}-in"

    @property
    def output(self) -> str:
        return f"{self.name}-out"

    def start(self, *more: str) -> None:
        job_file = self.folder / "job.py"
        job_file.write_text(JOB.format(name=self.name))
        command = [sys.executable, "-m", "twopc", "run", str(job_file), "--host", "process", *more]
        command += ["--bootstrap-servers", self.servers, "--checkpoint-dir", str(self.folder / "checkpoints")]
        self.log = self.folder / "log"
        with self.log.open("wb") as log:
            self._process = subprocess.Popen(
                [*command, "--checkpoint-interval", "200ms"], stdout=log, stderr=log, env=os.environ
            )

    def finish(self, seconds: float) -> CommandResult:
        """Wait for the end of the command."""
        code = self._process.wait(seconds)
        return CommandResult(code, "", self.log.read_text())

    def run(self, *more: str) -> CommandResult:
        self.start("--until-end", *more)
        return self.finish(240)

    def workers(self) -> list[psutil.Process]:
        return psutil.Process(self._process.pid).children(recursive=True)

    def kill(self) -> None:
        if self._process.poll() is None:
            for worker in self.workers():
                worker.kill()
            self._process.kill()
            self._process.wait(60)

    def produce(self, prefix: str, count: int) -> list[bytes]:
        """Put so many records into the input; return what the job makes of them."""
        values = [b"%s-%d" % (prefix.encode(), number) for number in range(count)]
        produce(self.servers, self.input, values)
        return [value.upper() for value in values]

    def written(self) -> list[bytes | None]:
        return values_of(self.servers, self.output)

    def topic_id(self, topic: str) -> str:
        with ControlClient(self.servers, {}) as client:
            return client.topics([topic])[topic].topic_id

    def recreate(self, topic: str) -> tuple[str, str]:
        """Return the id that it had, and the one that it has now."""
        before = self.topic_id(topic)
        delete_topic(self.servers, topic)
        create_topic(self.servers, topic)
        return before, self.topic_id(topic)


@pytest.fixture
def running(broker: Broker, topic: Callable[[], str], tmp_path: Path) -> Iterator[RunningJob]:
    """A job that has committed the output of 500 records, and goes on."""
    found = RunningJob(broker.bootstrap_servers, topic(), tmp_path)
    for each in (found.input, found.output):
        create_topic(broker.bootstrap_servers, each)
    found.produce("old", 500)
    found.start()
    eventually(lambda: len(found.written()) == 500)
    yield found
    found.kill()


def is_said(text: str, topic: str, before: str, now: str, *, strictly: bool = False) -> bool:
    """Whether it is said that a topic is another one now; or that it is gone, where a job may have asked in between."""
    gone = f"topic '{topic}' was deleted (its id was {before})"
    other = f"topic '{topic}' was deleted and created again: its id was {before}, and is {now} now"
    return other in text or (gone in text and not strictly)


@pytest.mark.parametrize(
    "paused", [pytest.param(False, id="running"), pytest.param(True, id="paused", marks=pytest.mark.proof)]
)
def test_records_of_a_recreated_input_topic_are_never_written_by_the_run_that_read_the_old_one(
    running: RunningJob, paused: bool
) -> None:
    old = running.written()
    workers = running.workers() if paused else []
    for worker in workers:
        worker.send_signal(signal.SIGSTOP)
    before, now = running.recreate(running.input)
    new = running.produce("new", 3_000)
    if paused:
        time.sleep(2)
    for worker in workers:
        worker.send_signal(signal.SIGCONT)
    ended = running.finish(END_SECONDS)
    assert ended.code == ConfigurationError.exit_code, ended.err
    assert is_said(ended.err, running.input, before, now, strictly=paused), ended.err
    assert f"--drop-inputs {running.input}:" in ended.err
    assert "Traceback" not in ended.err
    assert running.written() == old

    again = running.run()
    assert again.code == ConfigurationError.exit_code, again.err
    assert f"--drop-inputs {running.input}:" in again.err
    anew = running.run("--drop-inputs", running.input)
    assert anew.code == 0, anew.err
    assert running.written() == [*old, *new]


def test_a_deleted_input_topic_ends_the_job_and_is_named(running: RunningJob) -> None:
    delete_topic(running.servers, running.input)
    ended = running.finish(END_SECONDS)
    assert ended.code == ConfigurationError.exit_code, ended.err
    assert f"input topic '{running.input}' was deleted" in ended.err
    assert "retention" not in ended.err


def test_a_deleted_output_topic_ends_the_job_and_is_named(running: RunningJob) -> None:
    delete_topic(running.servers, running.output)
    running.produce("more", 100)
    ended = running.finish(END_SECONDS)
    assert ended.code == ConfigurationError.exit_code, ended.err
    assert f"output topic '{running.output}' was deleted" in ended.err


def test_a_recreated_output_topic_ends_the_job_and_the_next_run_writes_to_the_new_one(running: RunningJob) -> None:
    before, now = running.recreate(running.output)
    new = running.produce("more", 100)
    ended = running.finish(END_SECONDS)
    assert ended.code == ConfigurationError.exit_code, ended.err
    assert is_said(ended.err, running.output, before, now), ended.err
    assert running.run().code == 0
    assert running.written() == new
