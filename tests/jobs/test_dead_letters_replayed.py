"""Dead letters of a job are listed, shown, and replayed once each for the job that was mended."""

from __future__ import annotations

import json
import uuid
from pathlib import Path

import pytest

from tests.jobs.cli import twopc
from twopc import ConfigurationError
from twopc.kafka.clients.cluster import Cluster
from twopc.kafka.found_letter import REPLAYED, FoundLetter, letter_of
from twopc.kafka.input.topic_reader import read, whole
from twopc.kafka.transactions.letter_replay import LetterReplay
from twopc.testing.broker import Broker
from twopc.testing.topics import Write, create_topic, produce, read_topic

pytestmark = pytest.mark.broker

JOB = """
import os
from twopc import DeadLetter, Job, Json, KafkaSink, KafkaSource

def priced(order):
    return order | {"cents": round(order["total" if "MENDED" not in os.environ else "sum"] * 100)}

name = os.environ["JOB_NAME"]
job = Job(name, on_error=DeadLetter(f"{name}-dead"))
job.source(KafkaSource(f"{name}-in", value=Json())).map(priced).sink(KafkaSink(f"{name}-out", value=Json()))
"""
BAD, GOOD = 5, 3


class Pricing:
    """The job, its topics, and its commands."""

    def __init__(self, broker: Broker, folder: Path) -> None:
        self.name, self.servers, self.folder = f"letters-{uuid.uuid4().hex[:6]}", broker.bootstrap_servers, folder
        self.dead = f"{self.name}-dead"
        (folder / "job.py").write_text(JOB)
        for suffix, partitions in {"in": 2, "out": 1, "dead": 2}.items():
            create_topic(self.servers, f"{self.name}-{suffix}", partitions)
        orders = [b'{"sum": %d}' % n for n in range(BAD)] + [b'{"total": 1, "sum": 1}'] * GOOD
        produce(self.servers, f"{self.name}-in", (Write(value, key=b"k%d" % n) for n, value in enumerate(orders)))

    def run(self, **environment: str) -> None:
        where = ["-b", self.servers, "--checkpoint-dir", str(self.folder / "checkpoints"), "--host", "process"]
        job = str(self.folder / "job.py")
        ended = twopc("run", job, *where, "--until-end", JOB_NAME=self.name, **environment)
        assert ended.code == 0, ended.err

    def letters(self, *arguments: str) -> tuple[int, str]:
        done = twopc("dead-letters", *arguments, "-b", self.servers)
        return done.code, done.out + done.err

    def written(self, suffix: str) -> int:
        return sum(1 for _ in read_topic(self.servers, f"{self.name}-{suffix}"))


@pytest.fixture
def pricing(broker: Broker, tmp_path: Path) -> Pricing:
    job = Pricing(broker, tmp_path)
    job.run()
    return job


def test_letters_are_listed_shown_and_replayed_once_for_the_mended_job(pricing: Pricing) -> None:
    job = pricing
    listed = [json.loads(line) for line in job.letters("list", job.dead, "-o", "json")[1].splitlines()]
    assert [(each["exception"], each["step"], each["replayed"]) for each in listed] == [
        ("KeyError", "map(priced)", False)
    ] * BAD
    first = listed[0]["letter"]
    code, shown = job.letters("show", first)
    assert (code, "KeyError: 'total'" in shown, "Traceback" in shown) == (0, True, True)

    assert job.letters("replay", job.dead, first)[1] == f"{job.dead}: 1 letters replayed\n"
    code, refused = job.letters("replay", job.dead, first)
    assert (code, "was replayed before" in refused) == (2, True)
    assert f"{BAD - 1} letters would be replayed" in job.letters("replay", job.dead, "--all", "--dry-run")[1]
    said = job.letters("replay", job.dead, "--all")[1]
    assert (f"{BAD - 1} letters replayed" in said, "1 left out; each was replayed before" in said) == (True, True)
    assert f"{job.dead}: 0 letters replayed" in job.letters("replay", job.dead, "--all")[1]

    job.run(MENDED="1")
    assert (job.written("out"), job.written("in")) == (BAD + GOOD, 2 * BAD + GOOD)
    again = [record for record in read_topic(job.servers, f"{job.name}-in") if dict(record.headers or ()).get(REPLAYED)]
    assert len({dict(record.headers or ())[REPLAYED] for record in again}) == BAD


def test_who_says_neither_which_letters_nor_all_is_asked_for_it(pricing: Pricing) -> None:
    code, said = pricing.letters("replay", pricing.dead)
    assert (code, "or --all" in said) == (2, True)


def test_of_two_replays_at_a_time_each_letter_goes_back_once(pricing: Pricing) -> None:
    job, cluster = pricing, Cluster(pricing.servers, {})
    before = job.written("in")
    letters: list[FoundLetter] = [
        letter
        for batch in read(cluster, whole(cluster, [job.dead]))
        for row in batch.rows
        if (letter := letter_of(row)) is not None
    ]
    with LetterReplay(cluster, job.dead) as slow:
        slow.put_back(letters[:1])
        assert f"{BAD - 1} letters replayed" in job.letters("replay", job.dead, "--all")[1]
        with pytest.raises(ConfigurationError, match="another replay of letters"):
            slow.put_back(letters[1:])
    assert job.written("in") == before + BAD
