"""What a refusal advises, followed to the letter: of a job with two states, in two partitions of two topics.

Each scene breaks what one of them has. All that the advice does not give up must be there afterwards.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.jobs.cli import CommandResult, twopc
from twopc.kafka.clients.topic_client import TopicClient
from twopc.kafka.topic_partition import Position, TopicPartition
from twopc.testing.broker import Broker
from twopc.testing.topics import Write, create_topic, delete_topic, produce, read_topic

pytestmark = pytest.mark.broker

JOB = """
import os
import twopc
from twopc import Job, KafkaSink, KafkaSource

def count(total, value):
    return (total or 0) + 1, b"%d" % ((total or 0) + 1)

def number(total, value):
    return (total or 0) + 1, value + b" %d" % ((total or 0) + 1)

name = os.environ["JOB_NAME"]
topics = [f"{name}-{each}" for each in os.environ.get("JOB_TOPICS", "a b").split()]
serde = getattr(twopc, os.environ.get("JOB_SERDE", "Json"))()
job = Job(name)
counts = job.source(KafkaSource(topics)).stateful_map(count, name=os.environ.get("JOB_STATE", "count"), state=serde)
counts.stateful_map(number, name="number").sink(KafkaSink(f"{name}-out", partitioner="source"))
"""

FIRST = 10
"""So many records of each partition are counted before anything happens: 20 of each key, of both topics."""


@dataclass
class AdvisedJob:
    """A job whose key of a number is in the partition of that number, of both topics."""

    servers: str
    name: str
    folder: Path

    def fill(self, topic: str, *partitions: int) -> None:
        produce(self.servers, f"{self.name}-{topic}", [Write(b"x", b"k%d" % each, each) for each in partitions])

    def create(self, topic: str) -> None:
        create_topic(self.servers, f"{self.name}-{topic}", 2)

    def delete(self, topic: str) -> None:
        delete_topic(self.servers, f"{self.name}-{topic}")

    def run(self, *more: str, **environment: str) -> CommandResult:
        at = ("-b", self.servers, "--checkpoint-dir", str(self.folder / "checkpoints"), "--host", "inline")
        file = str(self.folder / "job.py")
        return twopc("run", file, *at, "--until-end", *more, JOB_NAME=self.name, **environment)

    def follow(self, advice: str, **environment: str) -> str:
        """See the job refused, with this advice, and run it as advised; return what was said before."""
        refused = self.run(**environment)
        assert refused.code in (2, 5), refused.err
        found = re.search(rf"{advice}(?=[\s:.,;)]|$)", refused.err)
        assert found, refused.err
        followed = self.run(*found[0].split(), **environment)
        assert followed.code == 0, followed.err
        assert self.run(**environment).code == 0, "it is said once"
        return refused.err

    def kept(self) -> list[int]:
        """The ids of the checkpoints that are there."""
        folders = (self.folder / "checkpoints" / self.name).glob("chk-*")
        return sorted(int(each.name.removeprefix("chk-")) for each in folders)

    def counts(self) -> dict[bytes | None, str]:
        """The last count and number of each key."""
        return {each.key: (each.value or b"").decode() for each in read_topic(self.servers, f"{self.name}-out")}

    def shown(self) -> list[dict[str, Any]]:
        """The positions of the latest checkpoint, as they are shown."""
        at = ("--checkpoint-dir", str(self.folder / "checkpoints"), "-o", "json")
        shown = twopc("checkpoints", "show", "latest", *at)
        return [each for snapshot in json.loads(shown.out)["snapshots"] for each in snapshot["positions"]]

    def positions(self) -> dict[str, int]:
        return {each["split"].removeprefix(f"{self.name}-"): each["position"] for each in self.shown()}


@pytest.fixture
def job(broker: Broker, topic: Callable[[], str], tmp_path: Path) -> AdvisedJob:
    made = AdvisedJob(broker.bootstrap_servers, topic(), tmp_path)
    for each in ("a", "b", "out"):
        made.create(each)
    (tmp_path / "job.py").write_text(JOB)
    for each in ("a", "b"):
        made.fill(each, *(0, 1) * FIRST)
    assert made.run().code == 0
    assert made.counts() == {b"k0": "20 20", b"k1": "20 20"}
    return made


def test_input_that_retention_deleted_is_given_up_and_nothing_else(job: AdvisedJob) -> None:
    job.fill("a", *[0] * 5)
    with TopicClient(job.servers, {}) as client:
        client.delete_records({TopicPartition(f"{job.name}-a", 0): Position(12)})
    job.fill("b", 0, 1)
    job.follow(rf"--accept-gap {job.name}-a\[0\]@10-12")
    assert job.counts() == {b"k0": "24 24", b"k1": "21 21"}
    given_up = {each["split"]: each["gaps"] for each in job.shown() if each["gaps"]}
    assert given_up == {f"{job.name}-a[0]": [[10, 12]]}
    at = ("--checkpoint-dir", str(job.folder / "checkpoints"))
    assert "Given up: deleted before it was read" in twopc("checkpoints", "show", "latest", *at).out


@pytest.mark.proof
@pytest.mark.parametrize("is_there_again", [True, False])
def test_a_deleted_topic_is_given_up_with_its_positions_only(job: AdvisedJob, is_there_again: bool) -> None:
    job.delete("b")
    job.fill("a", 0, 1)
    environment: Mapping[str, str] = {"JOB_TOPICS": "a"}
    if is_there_again:
        job.create("b")
        job.fill("b", *(0, 1) * 3)
        environment = {}
    job.follow(f"--drop-inputs {job.name}-b", **environment)
    last = "24 24" if is_there_again else "21 21"
    assert job.counts() == {b"k0": last, b"k1": last}
    left = {"a[0]": 11, "a[1]": 11} | ({"b[0]": 3, "b[1]": 3} if is_there_again else {})
    assert job.positions() == left


@pytest.mark.proof
@pytest.mark.parametrize("changed", [{"JOB_STATE": "tally"}, {"JOB_STATE": "tally", "JOB_SERDE": "Long"}])
def test_a_state_that_the_job_no_longer_has_is_given_up_alone(job: AdvisedJob, changed: Mapping[str, str]) -> None:
    if "JOB_SERDE" in changed:
        refused = job.run(JOB_SERDE="Long")
        assert "give the state another name and give the old one up with --drop-states count" in refused.err
    job.fill("a", 0, 1)
    job.follow("--drop-states count", **changed)
    assert job.counts() == {b"k0": "1 21", b"k1": "1 21"}
    assert job.positions() == {"a[0]": 11, "a[1]": 11, "b[0]": 10, "b[1]": 10}


def test_the_checkpoint_before_a_damaged_one_is_gone_back_to_with_all_that_it_had(job: AdvisedJob) -> None:
    before = job.kept()
    job.fill("a", *[0] * 5)
    job.fill("b", 1)
    assert job.run().code == 0
    *early, newest = [each for each in job.kept() if each not in before]
    for each in early:
        # It may have read all, and then there is nothing to go back for.
        assert twopc("checkpoints", "dispose", f"{each}", "--checkpoint-dir", str(job.folder / "checkpoints")).code == 0
    (job.folder / "checkpoints" / job.name / f"chk-{newest}" / "metadata.json").write_bytes(b"damaged")
    said = job.follow(r"--from \d+")
    assert re.search(r"twice.*a\[0\]@10 on", said), said
    assert job.counts() == {b"k0": "25 25", b"k1": "21 21"}
    written = [each.value for each in read_topic(job.servers, f"{job.name}-out") if each.key == b"k0"]
    assert written[20:] == [b"%d %d" % (number, number) for number in range(21, 26)] * 2
    assert job.positions() == {"a[0]": 15, "a[1]": 10, "b[0]": 10, "b[1]": 11}


@pytest.mark.proof
def test_where_the_folder_is_gone_all_is_begun_anew_where_the_group_stands(job: AdvisedJob) -> None:
    (job.folder / "checkpoints").rename(job.folder / "elsewhere")
    job.fill("a", 0)
    job.follow("--from none")
    assert job.counts() == {b"k0": "1 1", b"k1": "20 20"}
