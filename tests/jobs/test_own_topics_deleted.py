"""`twopc jobs delete JOB --topics`, which deletes the topics that a job has made for itself."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.jobs.cli import CommandResult, twopc
from twopc import Job, Json, KafkaSink, KafkaSource
from twopc.connect import RunSettings
from twopc.driver.run import run
from twopc.testing.broker import Broker
from twopc.testing.topics import create_topic, produce, read_topic

pytestmark = pytest.mark.broker


def by_length(name: str) -> Job:
    job = Job(name)
    job.source(KafkaSource(f"{name}-in")).key_by(len, name="by-length").sink(KafkaSink(f"{name}-out", key=Json()))
    return job


def topics_of(servers: str, name: str) -> set[str]:
    listed = json.loads(twopc("topics", "list", "-b", servers, "-o", "json").out)
    return {each["topic"].removeprefix(f"{name}-") for each in listed if each["topic"].startswith(f"{name}-")}


def test_the_topics_of_a_job_that_is_gone_are_deleted_when_somebody_says_yes_and_no_others(
    broker: Broker, topic: Callable[[], str], tmp_path: Path
) -> None:
    name, servers = topic(), broker.bootstrap_servers
    for suffix in ("in", "out"):
        create_topic(servers, f"{name}-{suffix}")
    produce(servers, f"{name}-in", [b"a", b"bc"])
    settings = RunSettings(bootstrap_servers=servers, checkpoint_dir=str(tmp_path), host="inline", until_end=True)
    run(by_length(name).definition(), settings)
    own = f"{name}-by-length-repartition"

    def delete(*more: str) -> CommandResult:
        return twopc("jobs", "delete", name, "--checkpoint-dir", str(tmp_path), "-b", servers, *more)

    assert "say what is to be deleted: --topics" in delete().err
    asked = delete("--topics")
    assert (asked.code, own in asked.err, "--yes" in asked.err) == (2, True, True), asked.err
    assert topics_of(servers, name) == {"in", "out", "by-length-repartition"}
    done = delete("--topics", "--yes", "-o", "json")
    assert json.loads(done.out) == {"job": name, "deleted": [own]}, done.err
    assert topics_of(servers, name) == {"in", "out"}
    assert len(read_topic(servers, f"{name}-out")) == 2
    assert "its own topics are gone already" in delete("--topics", "--yes").out
    create_topic(servers, own)
    other = delete("--topics", "--yes")
    assert (other.code, "made again since" in other.err) == (2, True), other.err
