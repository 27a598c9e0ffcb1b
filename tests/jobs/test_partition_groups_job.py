"""Two topics that meet where state by key is kept, through kill -9 and at another parallelism: one count a key."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.jobs.cli import CommandResult, twopc
from tests.jobs.counted_job import counts_by_key
from tests.jobs.slow_job import COUNT, SLOWLY
from twopc.faults.points import VARIABLE, CrashPoint
from twopc.testing.broker import Broker
from twopc.testing.topics import Write, create_topic, produce, read_topic

pytestmark = pytest.mark.drill

KEYS = 7
RECORDS = 3_000
"""Of each topic in each run: more than are read before the second checkpoint, however slow a machine is at those."""

JOB = (
    f"{SLOWLY.format(seconds=0.003)}{COUNT}"
    + """
from twopc import Job, Json, KafkaSink, KafkaSource, String

name = os.environ["JOB_NAME"]
job = Job(name)
web = job.source(KafkaSource(f"{name}-web", value=Json()), name="web").map(lambda click: click["page"])
shop = job.source(KafkaSource(f"{name}-shop", value=String()), name="shop")
beside = job.source(KafkaSource(f"{name}-beside"), name="beside")
web.merge(shop).map(slowly).stateful_map(count, name="seen").sink(KafkaSink(f"{name}-counts", value=Json()))
beside.sink(KafkaSink(f"{name}-copies"))
"""
)


class Played:
    """The job, its topics, and how many records of each key it was given."""

    def __init__(self, broker: Broker, name: str, folder: Path, partitions: dict[str, int]) -> None:
        self.name, self.servers, self.folder = name, broker.bootstrap_servers, folder
        self.given = 0
        for suffix, number in partitions.items():
            create_topic(self.servers, f"{name}-{suffix}", number)
        (folder / "job.py").write_text(JOB)

    def give(self) -> None:
        """Write the same keys to both topics, each record where its key belongs."""
        numbers = range(self.given, self.given + RECORDS)
        self.given += RECORDS
        produce(self.servers, f"{self.name}-web", (self._write(n, b'{"page": "p"}') for n in numbers))
        produce(self.servers, f"{self.name}-shop", (self._write(n, b"order") for n in numbers))
        produce(self.servers, f"{self.name}-beside", (Write(b"%d" % n) for n in numbers))

    def run(self, parallelism: int, point: CrashPoint | None = None, checkpoint: int = 2) -> CommandResult:
        once = self.folder / f"reached-{self.given}"
        armed = {} if point is None else {VARIABLE: f"{point.name},checkpoint={checkpoint},once={once}"}
        if point is None:
            once.touch()
        return twopc(
            *("run", str(self.folder / "job.py"), "-b", self.servers, "--checkpoint-dir", str(self.folder / "ck")),
            *("-p", str(parallelism), "--checkpoint-interval", "200ms", "--host", "process", "--until-end"),
            *("-o", "json"),
            JOB_NAME=self.name,
            STRUCK=str(once),
            **armed,
        )

    def counts(self) -> dict[bytes, list[int]]:
        return counts_by_key(self.servers, f"{self.name}-counts")

    def states(self) -> list[dict[str, Any]]:
        where = ("--checkpoint-dir", str(self.folder / "ck"), "-o", "json")
        states: list[dict[str, Any]] = json.loads(twopc("state", "scan", "latest", "seen", *where).out)
        return states

    def _write(self, number: int, value: bytes) -> Write:
        key = number % KEYS
        return Write(value, key=b"k%d" % key, partition=key % 4)


@pytest.mark.proof
def test_a_key_has_one_count_over_both_topics_through_a_kill_and_every_parallelism(
    broker: Broker, topic: Callable[[], str], tmp_path: Path
) -> None:
    played = Played(broker, topic(), tmp_path, {"web": 4, "shop": 4, "beside": 3, "counts": 2, "copies": 1})
    for parallelism, armed in ((2, CrashPoint.BEFORE_COMMIT), (3, CrashPoint.BEFORE_RESTORE), (1, None)):
        played.give()
        finished = played.run(parallelism, armed, 2 if armed is CrashPoint.BEFORE_COMMIT else 1)
        assert finished.code == 0, finished.err
        assert json.loads(finished.out)["attempts"] >= (1 if armed is None else 2), finished.err
        expected = {b"k%d" % key: 2 * len(range(key, played.given, KEYS)) for key in range(KEYS)}
        assert played.counts() == {key: list(range(1, count + 1)) for key, count in expected.items()}
        copies = sorted(int(record.value or b"") for record in read_topic(played.servers, f"{played.name}-copies"))
        assert copies == list(range(played.given))
        states = played.states()
        assert {row["key"].encode(): row["value"] for row in states} == expected
        assert {(row["operator"], row["state"]) for row in states} == {("seen", "seen")}
        assert all(row["partition"] % parallelism == row["subtask"] for row in states)
        assert all(one["partition"] <= other["partition"] for one, other in pairwise(states))


def test_topics_of_different_partition_counts_are_refused_by_name_at_the_start(
    broker: Broker, topic: Callable[[], str], tmp_path: Path
) -> None:
    played = Played(broker, topic(), tmp_path, {"web": 4, "shop": 3, "beside": 1, "counts": 1, "copies": 1})
    refused = played.run(2)
    assert refused.code == 2
    assert "'seen' keeps a state for each key" in refused.err
    assert f"({played.name}-shop: 3, {played.name}-web: 4)" in refused.err
    assert not played.counts()
