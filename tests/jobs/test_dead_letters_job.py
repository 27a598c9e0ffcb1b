"""A job that routes orders, and makes dead letters of what it can't read, process or write, through kills."""

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

RECORDS = 8_000

JOB = """
import os, time
from pathlib import Path
from twopc import DeadLetter, Job, Json, KafkaSink, KafkaSource

def priced(order):
    if not Path(os.environ["STRUCK"]).exists():
        time.sleep(0.001)
    note = "x" * 10_000 if order["id"] % 1_009 == 0 else ""
    return order | {"cents": round(order["total"] * 100), "note": note}

name = os.environ["JOB_NAME"]
job = Job(name, on_error=DeadLetter(f"{name}-dead"))
orders = job.source(KafkaSource(f"{name}-orders", value=Json())).map(priced)
large = orders.filter(lambda order: order["cents"] >= 10_000)
large.map(lambda order: order | ({"id": {1, 2}} if order["id"] % 7 == 0 else {})).sink(
    KafkaSink(f"{name}-large", value=Json(), properties={"message.max.bytes": 8_000})
)
orders.filter(lambda order: order["cents"] < 10_000).sink(
    KafkaSink(f"{name}-small", value=Json(), properties={"message.max.bytes": 8_000})
)
"""


def order(number: int) -> bytes:
    """Return one that can't be read, processed or written, now and then."""
    if number % 11 == 0:
        return b"{not json %d" % number
    total = "many" if number % 13 == 0 else 250 if number % 2 else 2.5
    return json.dumps({"id": number, "total": total}).encode()


def is_good(number: int) -> bool:
    return bool(number % 11 and number % 13 and number % 1_009 and not (number % 2 and number % 7 == 0))


def committed(servers: str, topic: str) -> list[int]:
    return sorted(json.loads(record.value or b"")["id"] for record in read_topic(servers, topic))


@pytest.mark.parametrize(
    "point",
    [CrashPoint.BEFORE_SNAPSHOT, CrashPoint.BEFORE_COMMIT, CrashPoint.AFTER_COMMIT],
    ids=lambda point: point.name.lower(),
)
def test_good_orders_and_dead_letters_are_there_once_although_a_subtask_was_killed(
    broker: Broker, topic: Callable[[], str], tmp_path: Path, point: CrashPoint
) -> None:
    name, servers = topic(), broker.bootstrap_servers
    for suffix in ("orders", "large", "small", "dead"):
        create_topic(servers, f"{name}-{suffix}", 4)
    produce(servers, f"{name}-orders", (Write(order(each), partition=each % 4) for each in range(RECORDS)))
    (tmp_path / "job.py").write_text(JOB)
    once = tmp_path / "reached"
    finished = twopc(
        *("run", str(tmp_path / "job.py"), "-b", servers, "--checkpoint-dir", str(tmp_path / "ck")),
        *("-p", "2", "--checkpoint-interval", "200ms", "--host", "process", "--until-end", "-o", "json"),
        JOB_NAME=name,
        STRUCK=str(once),
        **{VARIABLE: f"{point.name},checkpoint=3,subtask=0,once={once}"},
    )
    assert finished.code == 0, finished.err
    assert once.exists()
    assert json.loads(finished.out)["attempts"] == 2
    good = list(filter(is_good, range(RECORDS)))
    assert committed(servers, f"{name}-large") == [number for number in good if number % 2]
    assert committed(servers, f"{name}-small") == [number for number in good if number % 2 == 0]
    dead = read_topic(servers, f"{name}-dead")
    bad = [number for number in range(RECORDS) if not is_good(number)]
    assert Counter(record.value for record in dead) == Counter(map(order, bad))
    stages = Counter(dict(record.headers or ())["__connect.errors.stage"] for record in dead)
    assert set(stages) == {b"VALUE_CONVERTER", b"TRANSFORMATION", b"KAFKA_PRODUCE"}
    places = {
        (headers["__connect.errors.partition"], headers["__connect.errors.offset"])
        for headers in (dict(record.headers or ()) for record in dead)
    }
    assert places == {(b"%d" % (number % 4), b"%d" % (number // 4)) for number in bad}


def test_the_topic_of_dead_letters_must_be_there_when_the_job_starts(
    broker: Broker, topic: Callable[[], str], tmp_path: Path
) -> None:
    name, servers = topic(), broker.bootstrap_servers
    for suffix in ("orders", "large", "small"):
        create_topic(servers, f"{name}-{suffix}")
    (tmp_path / "job.py").write_text(JOB)
    finished = twopc(
        *("run", str(tmp_path / "job.py"), "-b", servers, "--checkpoint-dir", str(tmp_path / "ck")),
        *("--host", "process", "--until-end"),
        JOB_NAME=name,
        STRUCK=str(tmp_path),
    )
    assert finished.code == 2
    assert f"output topic '{name}-dead' isn't there: create it" in finished.err
