"""A processor with state, a time to live and timers, through kill -9 and at other parallelisms: each output once."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.jobs.cli import twopc
from twopc.faults.points import VARIABLE, CrashPoint
from twopc.testing.broker import Broker
from twopc.testing.topics import Write, create_topic, produce, read_topic

pytestmark = pytest.mark.drill

PARTITIONS = 4
RECORDS = 4_000
HOURS = 60
"""Of event time: every id comes in each hour, and is forgotten after a day."""

JOB = """
import os, time
from pathlib import Path
from twopc import Job, Json, KafkaSink, KafkaSource, Processor, Record, ValueState

class FirstOfDay(Processor):
    seen = ValueState(Json(), ttl="24h")
    repeats = ValueState(Json())

    def process(self, record, context):
        if not Path(os.environ["STRUCK"]).exists():
            time.sleep(0.002)
        if self.seen.get() is None:
            self.seen.set(record.value["hour"])
            self.repeats.clear()
            context.set_timer(context.timestamp + 5 * 3_600_000)
            yield record.replace(value={"first": record.value["hour"]})
        else:
            self.repeats.set((self.repeats.get() or 0) + 1)

    def on_timer(self, at, context):
        return Record(context.key, {"repeats": self.repeats.get(), "at": at // 3_600_000})

name = os.environ["JOB_NAME"]
job = Job(name)
(
    job.source(KafkaSource(f"{name}-in", value=Json()), timestamp=lambda value: value["hour"] * 3_600_000)
    .process(FirstOfDay(), name="first-of-day")
    .sink(KafkaSink(f"{name}-out", value=Json()))
)
"""


def expected(ids: int) -> Counter[tuple[bytes, str]]:
    """What comes out by key: the first of each day, and at the fifth hour behind it the four that came between."""
    firsts = range(1, HOURS + 1, 24)
    every = [{"first": hour} for hour in firsts] + [{"repeats": 4, "at": hour + 5} for hour in firsts]
    return Counter((b"k%d" % number, json.dumps(value)) for number in range(ids) for value in every)


@pytest.mark.proof
def test_a_processor_makes_each_output_once_through_kills_and_every_parallelism(
    broker: Broker, topic: Callable[[], str], tmp_path: Path
) -> None:
    name, ids = topic(), RECORDS // HOURS
    for suffix in ("in", "out"):
        create_topic(broker.bootstrap_servers, f"{name}-{suffix}", PARTITIONS)
    (tmp_path / "job.py").write_text(JOB)
    points = [(2, CrashPoint.BEFORE_SNAPSHOT), (3, CrashPoint.BEFORE_COMMIT), (1, CrashPoint.AFTER_COMMIT)]
    for run, (parallelism, point) in enumerate(points):
        hours = range(1 + run * HOURS // 3, 1 + (run + 1) * HOURS // 3)
        produce(
            broker.bootstrap_servers,
            f"{name}-in",
            (
                Write(b'{"hour": %d}' % hour, key=b"k%d" % number, partition=number % PARTITIONS)
                for hour in hours
                for number in range(ids)
            ),
        )
        struck = tmp_path / f"struck-{run}"
        finished = twopc(
            *(
                "run",
                str(tmp_path / "job.py"),
                "-b",
                broker.bootstrap_servers,
                "--checkpoint-dir",
                str(tmp_path / "ck"),
            ),
            *("-p", str(parallelism), "--checkpoint-interval", "200ms", "--host", "process", "--until-end"),
            *("-o", "json"),
            JOB_NAME=name,
            STRUCK=str(struck),
            **{VARIABLE: f"{point.name},checkpoint=2,once={struck}"},
        )
        assert finished.code == 0, finished.err
        assert json.loads(finished.out)["attempts"] >= 2, finished.err
    out = read_topic(broker.bootstrap_servers, f"{name}-out")
    assert Counter((record.key or b"", json.dumps(json.loads(record.value or b""))) for record in out) == expected(ids)
    where = ("--checkpoint-dir", str(tmp_path / "ck"), "-o", "json")
    states = json.loads(twopc("state", "scan", "latest", "first-of-day/seen", *where).out)
    assert {row["key"]: row["value"] for row in states} == {f"k{number}": 49 for number in range(ids)}
