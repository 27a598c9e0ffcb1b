"""A job that reads the topics of a pattern, while these come and go between its runs."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.jobs.cli import CommandResult, twopc
from tests.kafka.kit import eventually
from twopc.testing.broker import Broker
from twopc.testing.topics import create_topic, delete_topic, produce, read_topic

pytestmark = pytest.mark.broker

JOB = """
from twopc import Job, KafkaSink, KafkaSource

job = Job("{name}")
job.source(KafkaSource(pattern="{name}-in-.*", exclude=".*-not")).sink(KafkaSink("{name}-out"))
"""


def test_new_topics_are_read_from_their_first_record_and_gone_ones_kept_until_they_are_given_up(
    broker: Broker, topic: Callable[[], str], tmp_path: Path
) -> None:
    name, servers = topic(), broker.bootstrap_servers
    job_file = tmp_path / "job.py"
    job_file.write_text(JOB.format(name=name))
    create_topic(servers, f"{name}-out")

    def fill(suffix: str, *values: bytes) -> None:
        create_topic(servers, f"{name}-in-{suffix}", 2)
        produce(servers, f"{name}-in-{suffix}", values)

    def run(*more: str) -> CommandResult:
        return twopc(
            *("run", str(job_file), "-b", servers, "--checkpoint-dir", str(tmp_path / "checkpoints")),
            *("--host", "inline", "--until-end", *more),
        )

    def output() -> list[bytes]:
        return sorted(record.value or b"" for record in read_topic(servers, f"{name}-out"))

    fill("a", b"a")
    fill("a-not", b"never")
    first = run()
    assert first.code == 0, first.err
    fill("b", b"b1", b"b2")
    second = run()
    assert second.code == 0, second.err
    assert output() == [b"a", b"b1", b"b2"]
    delete_topic(servers, f"{name}-in-a")
    produce(servers, f"{name}-in-b", [b"b3"])
    without = run()
    assert without.code == 0, without.err
    assert f"--drop-inputs {name}-in-a" in without.err
    assert output() == [b"a", b"b1", b"b2", b"b3"]
    fill("a", b"new")
    refused = run()
    assert refused.code == 2, refused.err
    assert f"--drop-inputs {name}-in-a:" in refused.err
    dropped = run("--drop-inputs", f"{name}-in-a")
    assert dropped.code == 0, dropped.err
    assert output() == [b"a", b"b1", b"b2", b"b3", b"new"]


@pytest.mark.proof
def test_a_job_goes_on_with_the_other_topics_when_one_is_deleted_while_it_runs(
    broker: Broker, topic: Callable[[], str], tmp_path: Path
) -> None:
    name, servers = topic(), broker.bootstrap_servers
    job_file = tmp_path / "job.py"
    job_file.write_text(JOB.format(name=name))
    for suffix in ("out", "in-a", "in-b"):
        create_topic(servers, f"{name}-{suffix}")
    at = ("--checkpoint-dir", str(tmp_path / "checkpoints"), "-b", servers, "--host", "process", "-p", "2")
    command = [sys.executable, "-m", "twopc", "run", str(job_file), *at, "--checkpoint-interval", "300ms"]

    def output() -> list[bytes]:
        return sorted(record.value or b"" for record in read_topic(servers, f"{name}-out"))

    with (tmp_path / "log").open("w") as log, subprocess.Popen(command, stderr=log, stdout=log) as run:
        try:
            for suffix in ("in-a", "in-b"):
                produce(servers, f"{name}-{suffix}", [suffix.encode()])
            eventually(lambda: output() == [b"in-a", b"in-b"])
            delete_topic(servers, f"{name}-in-a")
            produce(servers, f"{name}-in-b", [b"more"])
            eventually(lambda: output() == [b"in-a", b"in-b", b"more"])
            run.terminate()
            assert run.wait(60) == 0
        finally:
            run.kill()
    text = (tmp_path / "log").read_text()
    assert f"input topic '{name}-in-a', which '{name}-in-.*' without '.*-not' names, is not there" in text
