"""A job that routes orders, and makes dead letters of what it can't read, process or write, through kills."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.jobs.slow_job import SlowJob
from twopc.faults.armed_faults import ArmedFault
from twopc.faults.points import CrashPoint
from twopc.testing.broker import Broker
from twopc.testing.topics import Write, create_topic, produce, read_topic

pytestmark = pytest.mark.drill

RECORDS = 8_000

JOB = """
from twopc import DeadLetter, Job, Json, KafkaSink, KafkaSource

def priced(order):
    note = "x" * 10_000 if order["id"] % 1_009 == 0 else ""
    return order | {"cents": round(order["total"] * 100), "note": note}

job = Job(name, on_error=DeadLetter(f"{name}-dead"))
orders = job.source(KafkaSource(f"{name}-orders", value=Json())).map(slowly).map(priced)
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


@pytest.mark.proof
def test_good_orders_and_dead_letters_are_there_once_although_a_subtask_was_killed(
    broker: Broker, topic: Callable[[], str], tmp_path: Path
) -> None:
    name, servers = topic(), broker.bootstrap_servers
    for suffix in ("orders", "large", "small", "dead"):
        create_topic(servers, f"{name}-{suffix}", 4)
    produce(servers, f"{name}-orders", (Write(order(each), partition=each % 4) for each in range(RECORDS)))
    report = SlowJob(servers, name, tmp_path, JOB, seconds=0.001).survive(
        ArmedFault(CrashPoint.BEFORE_COMMIT, checkpoint=3, subtask=0)
    )
    counts = report["record_errors"]
    assert {(count["source"], count["skipped"]) for count in counts} == {("source-1", 0)}
    told = sum(count["dead_letters"] for count in counts)
    assert 0 < told < sum(not is_good(number) for number in range(RECORDS)), "of the last attempt"
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


@pytest.mark.proof
def test_the_topic_of_dead_letters_must_be_there_when_the_job_starts(
    broker: Broker, topic: Callable[[], str], tmp_path: Path
) -> None:
    name, servers = topic(), broker.bootstrap_servers
    for suffix in ("orders", "large", "small"):
        create_topic(servers, f"{name}-{suffix}")
    finished = SlowJob(servers, name, tmp_path, JOB).run()
    assert finished.code == 2
    assert f"output topic '{name}-dead' isn't there: create it" in finished.err


FILES_ONLY = """
from file_sink import FileSink
from twopc import DeadLetter, Job, Json, KafkaSource

def good(value):
    if value % 11 == 0:
        raise LookupError(value)
    return value

job = Job(name, on_error=DeadLetter(f"{name}-dead"))
job.source(KafkaSource(f"{name}-orders", value=Json())).map(slowly).map(good).sink(FileSink(f"{folder}/out"))
"""


def test_a_job_that_writes_files_only_has_its_dead_letters_in_kafka_once(
    broker: Broker, topic: Callable[[], str], tmp_path: Path
) -> None:
    name, servers = topic(), broker.bootstrap_servers
    for suffix in ("orders", "dead"):
        create_topic(servers, f"{name}-{suffix}", 2)
    produce(servers, f"{name}-orders", (Write(b"%d" % each, partition=each % 2) for each in range(RECORDS)))
    job = SlowJob(servers, name, tmp_path, FILES_ONLY, beside="file_sink.py")
    job.survive(ArmedFault(CrashPoint.BETWEEN_COMMITS, checkpoint=3, subtask=0))
    lines = Counter(line for file in (tmp_path / "out").iterdir() for line in file.read_text().splitlines())
    assert lines == Counter(str(number) for number in range(RECORDS) if number % 11)
    dead = Counter(int(record.value or b"") for record in read_topic(servers, f"{name}-dead"))
    assert dead == Counter(range(0, RECORDS, 11))
