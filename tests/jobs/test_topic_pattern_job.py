"""A job that reads the topics of a pattern, while these come and go between its runs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.jobs.cli import CommandResult, twopc
from twopc.testing.broker import Broker
from twopc.testing.topics import create_topic, delete_topic, produce, read_topic

pytestmark = pytest.mark.broker

JOB = """
from twopc import Job, KafkaSink, KafkaSource

job = Job("{name}")
job.source(KafkaSource(pattern="{name}-in-.*", exclude=".*-not")).sink(KafkaSink("{name}-out"))
"""


def test_new_topics_are_read_from_their_first_record_and_gone_ones_must_be_given_up(
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
    refused = run()
    assert refused.code == 2, refused.err
    assert f"--drop-inputs {name}-in-a" in refused.err.replace("\n", " ")
    dropped = run("--drop-inputs", f"{name}-in-a")
    assert dropped.code == 0, dropped.err
    assert output() == [b"a", b"b1", b"b2"]
