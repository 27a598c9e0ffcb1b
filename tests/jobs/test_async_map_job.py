"""A job with calls of another system in flight, through a kill -9: nothing lost, twice or out of order."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.jobs.cli import twopc
from twopc.faults.points import VARIABLE, CrashPoint
from twopc.testing.broker import Broker
from twopc.testing.topics import Write, create_topic, produce, read_topic

RECORDS = 3_000
PARTITIONS = 2

JOB = """
import asyncio, os, random
from twopc import Job, Json, KafkaSink, KafkaSource

class Enrich:
    async def open(self):
        self.slots = asyncio.Semaphore(100)

    async def __call__(self, value):
        async with self.slots:
            await asyncio.sleep(random.random() / 50)
        if random.random() < 0.01:
            raise ConnectionError("try again")
        return [value, value * 2]

    async def close(self):
        assert not self.slots.locked()

name = os.environ["JOB_NAME"]
job = Job(name)
numbers = job.source(KafkaSource(f"{name}-in", value=Json()))
enriched = numbers.map_async(Enrich(), concurrency=32, timeout="1m", retries=20)
enriched.sink(KafkaSink(f"{name}-out", value=Json()))
"""


@pytest.mark.parametrize(
    ("host", "point"),
    [
        pytest.param("process", CrashPoint.AFTER_NEXT_WRITE, marks=[pytest.mark.drill, pytest.mark.proof]),
        pytest.param("spark", CrashPoint.BEFORE_COMMIT, marks=[pytest.mark.spark, pytest.mark.proof]),
    ],
    ids=["process", "spark"],
)
def test_results_come_once_and_in_order_although_a_subtask_was_killed(
    broker: Broker, topic: Callable[[], str], tmp_path: Path, host: str, point: CrashPoint
) -> None:
    name, servers = topic(), broker.bootstrap_servers
    for suffix in ("in", "out"):
        create_topic(servers, f"{name}-{suffix}", PARTITIONS)
    keys = {number % PARTITIONS: b"key-%d" % number for number in range(PARTITIONS)}
    produce(
        servers,
        f"{name}-in",
        (Write(b"%d" % number, keys[number % PARTITIONS], partition=number % PARTITIONS) for number in range(RECORDS)),
    )
    (tmp_path / "job.py").write_text(JOB)
    once = tmp_path / "reached"
    finished = twopc(
        *("run", str(tmp_path / "job.py"), "-b", servers, "--checkpoint-dir", str(tmp_path / "ck")),
        *("-p", "2", "--checkpoint-interval", "200ms", "--host", host, "--until-end", "-o", "json"),
        JOB_NAME=name,
        **{VARIABLE: f"{point.name},checkpoint=2,subtask=0,once={once}"},
    )
    assert finished.code == 0, finished.err
    assert once.exists()
    assert json.loads(finished.out)["attempts"] >= 2
    for partition, key in keys.items():
        values = [json.loads(record.value or b"") for record in read_topic(servers, f"{name}-out") if record.key == key]
        assert values == [[number, 2 * number] for number in range(partition, RECORDS, PARTITIONS)]
