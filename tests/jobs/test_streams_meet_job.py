"""Windows over a stream that comes through a `key_by`, and one that meets it by another way, through kill -9."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.jobs.cli import twopc
from twopc.faults.points import VARIABLE
from twopc.testing.broker import Broker
from twopc.testing.topics import Write, create_topic, produce, read_topic

pytestmark = pytest.mark.drill

NAME = "streams-meet"
PAGES, PARTITIONS, RECORDS = 5, 2, 1_500
MINUTE_MS, GRACE_MS = 60_000, 10_000
LATE = 700
"""The number of the one record that is late, of the stream that comes by itself."""

JOB = f"""
from twopc import Job, Json, KafkaSink, KafkaSource, String, Tumbling

job = Job("{NAME}")
clicks = job.source(KafkaSource("{NAME}-clicks", value=Json()), timestamp=lambda click: click["at_ms"])
orders = job.source(KafkaSource("{NAME}-orders", key=String(), value=Json()), timestamp=lambda order: order["at_ms"])
by_page = clicks.key_by(lambda click: click["page"], name="by-page", key=String())
counted = orders.merge(by_page).window(Tumbling("1m"), grace="10s").count(name="n")
counted.final().sink(KafkaSink("{NAME}-final", key=String(), value=Json()))
counted.late().sink(KafkaSink("{NAME}-late", key=String(), value=Json()))
"""


def at_ms(number: int) -> int:
    """Return when a record was: one second behind another, and one of them 10 minutes before that."""
    return (number + 1 - (600 if number == LATE else 0)) * 1_000


def page(number: int) -> str:
    return f"/{number // 3 % PAGES}"


def records(topic: str, *numbers: int) -> Iterator[Write]:
    """Yield these records, keyed if they are orders; clicks go to one partition after the other in long runs."""
    for number in numbers:
        value = json.dumps({"page": page(number), "at_ms": at_ms(number)}).encode()
        if topic == "orders":
            yield Write(value, key=page(number).encode())
        else:
            yield Write(value, partition=number // 200 % PARTITIONS)


def test_what_a_backlog_of_both_makes_is_what_their_times_say_though_workers_are_killed(
    broker: Broker, tmp_path: Path
) -> None:
    servers = broker.bootstrap_servers
    (tmp_path / "job.py").write_text(JOB)
    for suffix in ("clicks", "orders", "final", "late"):
        create_topic(servers, f"{NAME}-{suffix}", PARTITIONS)
    for topic, which in (("clicks", range(1, RECORDS, 2)), ("orders", range(0, RECORDS, 2))):
        produce(servers, f"{NAME}-{topic}", records(topic, *which))
    struck = tmp_path / "struck"
    done = twopc(
        *("run", str(tmp_path / "job.py"), "-b", servers, "--checkpoint-dir", str(tmp_path / "ck"), "-p", "2"),
        *("--host", "process", "--until-end", "--checkpoint-interval", "300ms"),
        **{VARIABLE: f"AFTER_PRE_COMMIT,checkpoint=2,once={struck}"},
    )
    assert (done.code, struck.exists()) == (0, True), done.err
    expected = Counter(
        (page(number), at_ms(number) // MINUTE_MS * MINUTE_MS) for number in range(RECORDS) if number != LATE
    )
    over = at_ms(RECORDS - 1) - MINUTE_MS - GRACE_MS
    found = [
        ((record.key or b"").decode(), json.loads(record.value or b""))
        for record in read_topic(servers, f"{NAME}-final")
    ]
    assert sorted((key, window["start"], window["value"]) for key, window in found) == sorted(
        (*each, count) for each, count in expected.items() if each[1] <= over
    )
    assert [json.loads(record.value or b"")["at_ms"] for record in read_topic(servers, f"{NAME}-late")] == [at_ms(LATE)]
