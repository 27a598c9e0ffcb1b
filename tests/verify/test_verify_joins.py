"""`twopc verify` where topics meet by key: judged in the order of event time, and said where that proves nothing."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.jobs.cli import CommandResult, twopc
from twopc.testing.broker import Broker
from twopc.testing.topics import Write, create_topic, produce

pytestmark = pytest.mark.broker

PARTITIONS = 2

JOB = """
from twopc import Job, Json, KafkaSink, KafkaSource

job = Job({name!r})
orders = job.source(KafkaSource("{name}-orders", value=Json()), timestamp=lambda order: order["at"])
changes = job.source(KafkaSource("{name}-changes", value=Json()), timestamp=lambda change: change["at"])

def pair(one, other):
    return [one and one["at"], other and other["at"]]

def count(total, value):
    return (total or 0) + 1, [total or 0, value["at"]]

orders.join(changes.table("latest"), pair, how="left").sink(KafkaSink("{name}-joined", value=Json()))
orders.join(changes, pair, how="outer", within="20ms", name="near").sink(KafkaSink("{name}-near", value=Json()))
orders.merge(changes).stateful_map(count, name="count").sink(KafkaSink("{name}-counted", value=Json()))
"""


def writes(times: range) -> list[Write]:
    return [
        Write(json.dumps({"at": at}).encode(), key=b"k%d" % (at % 5), partition=at % 5 % PARTITIONS) for at in times
    ]


def test_joins_and_states_over_topics_are_judged_in_the_order_of_times_and_not_where_a_record_came_late(
    broker: Broker, topic: Callable[[], str], tmp_path: Path
) -> None:
    name, servers = topic(), broker.bootstrap_servers
    for suffix in ("orders", "changes", "joined", "near", "counted"):
        create_topic(servers, f"{name}-{suffix}", PARTITIONS)
    job = tmp_path / "job.py"
    job.write_text(JOB.format(name=name))

    def run() -> None:
        done = twopc(
            *("run", str(job), "-b", servers, "--host", "inline", "--until-end"),
            *("--checkpoint-dir", str(tmp_path / "checkpoints"), "--checkpoint-interval", "200ms"),
        )
        assert done.code == 0, done.err

    def verify(*more: str) -> CommandResult:
        return twopc("verify", "--map", str(job), "-b", servers, "-o", "json", *more)

    produce(servers, f"{name}-orders", writes(range(10_000, 12_000, 2)))
    produce(servers, f"{name}-changes", writes(range(10_001, 12_000, 6)))
    run()
    held = verify()
    assert held.code == 0, held.out + held.err
    assert json.loads(held.out)["left_out"] == []

    # What comes behind an order that was joined already is the earlier by its time, and met nothing of it.
    produce(servers, f"{name}-changes", writes(range(11_000, 11_010)))
    run()
    late = verify()
    assert late.code == 2
    assert "is not judged: it is made of" in late.err
    assert "which meet in the order of their times only where each record was there" in late.err
