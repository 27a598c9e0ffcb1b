"""Input of a keyed job that was deleted before it was read, in one of two partitions: on a real broker."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.jobs.cli import CommandResult, twopc
from twopc.kafka.topic_partition import Position, TopicPartition
from twopc.kafka.topics import TopicClient
from twopc.testing.broker import Broker
from twopc.testing.topics import Write, create_topic, produce, read_topic

pytestmark = pytest.mark.broker

JOB = """
from twopc import Job, KafkaSink, KafkaSource

def count(total, value):
    total = (total or 0) + 1
    return total, b"%d" % total

job = Job("{name}")
counts = job.source(KafkaSource("{name}-in")).stateful_map(count, name="count")
counts.sink(KafkaSink("{name}-out", partitioner="source"))
"""


def test_the_advice_of_the_refusal_keeps_all_state_and_puts_the_gap_on_record(
    broker: Broker, topic: Callable[[], str], tmp_path: Path
) -> None:
    name, servers = topic(), broker.bootstrap_servers
    for suffix in ("in", "out"):
        create_topic(servers, f"{name}-{suffix}", 2)
    (tmp_path / "job.py").write_text(JOB.format(name=name))
    stored = ("--checkpoint-dir", str(tmp_path / "checkpoints"))

    def fill(*partitions: int) -> None:
        produce(servers, f"{name}-in", [Write(b"x", key=b"k%d" % each, partition=each) for each in partitions])

    def run(*more: str) -> CommandResult:
        return twopc("run", str(tmp_path / "job.py"), "-b", servers, *stored, "--host", "inline", "--until-end", *more)

    fill(*(0, 1) * 10)
    assert run().code == 0
    fill(*[0] * 5)
    with TopicClient(servers, {}) as client:
        client.delete_records({TopicPartition(f"{name}-in", 0): Position(12)})
    refused = run()
    assert refused.code == 2
    advice = re.search(rf"--accept-gap ({name}-in\[0\]@10-12)$", refused.err.strip())
    assert advice, refused.err
    assert run("--accept-gap", advice[1]).code == 0
    fill(0, 1)
    assert run().code == 0, "it is said once"
    last = {record.key: int(record.value or b"") for record in read_topic(servers, f"{name}-out")}
    assert last == {b"k0": 10 + 3 + 1, b"k1": 10 + 1}
    shown = twopc("checkpoints", "show", "latest", *stored, "-o", "json")
    [snapshot] = json.loads(shown.out)["snapshots"]
    assert [each["gaps"] for each in snapshot["positions"]] == [[[10, 12]], []]
    assert "Given up: deleted before it was read" in twopc("checkpoints", "show", "latest", *stored).out
