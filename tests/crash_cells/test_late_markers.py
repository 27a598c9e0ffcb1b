"""Markers that come long after EndTxn was answered, as from a starved broker: nobody takes their absence for a loss."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer

from tests.jobs.cli import twopc
from twopc.faults.kafka_proxy import Api, Fate, KafkaProxy, Rule
from twopc.faults.tcp_proxy import Direction
from twopc.testing.local_broker import LocalBroker
from twopc.testing.topics import create_topic, produce, read_topic

pytestmark = pytest.mark.drill

LATE_SECONDS = 4.0
"""Longer than a command needs to start and look."""

JOB = """
from twopc import Job, KafkaSink, KafkaSource

job = Job("{name}")
job.source(KafkaSource("{name}-in")).map(bytes.upper).sink(KafkaSink("{name}-out"))
"""


@pytest.fixture
def late_markers(proxy: KafkaProxy) -> Iterator[None]:
    proxy.add(Rule(Api.WRITE_TXN_MARKERS, Direction.TO_TARGET, Fate.DELAY, times=9, delay_seconds=LATE_SECONDS))
    yield
    proxy.clear()


@pytest.fixture
def name(broker: LocalBroker, topic: Callable[[], str]) -> str:
    """Of topics that nothing was written to."""
    made = topic()
    for end in ("in", "out"):
        create_topic(broker.bootstrap_servers, f"{made}-{end}")
    return made


def write(servers: str, name: str, value: bytes) -> Producer:
    producer = Producer({"bootstrap.servers": servers, "transactional.id": f"{name}-{value.decode()}"})
    producer.init_transactions(60)
    producer.begin_transaction()
    producer.produce(f"{name}-out", value)
    producer.flush(60)
    return producer


def write_both(servers: str, name: str) -> None:
    """Commit one record and abort another; return when the broker has said yes to both."""
    committed, aborted = (write(servers, name, value) for value in (b"A", b"B"))
    committed.commit_transaction(60)
    aborted.abort_transaction(60)


@pytest.mark.usefixtures("late_markers")
def test_what_was_committed_a_moment_ago_is_read(broker: LocalBroker, name: str) -> None:
    write_both(broker.bootstrap_servers, name)
    assert [record.value for record in read_topic(broker.bootstrap_servers, f"{name}-out")] == [b"A"]


@pytest.mark.usefixtures("late_markers")
@pytest.mark.proof
def test_what_was_committed_a_moment_ago_is_verified(broker: LocalBroker, name: str, tmp_path: Path) -> None:
    produce(broker.bootstrap_servers, f"{name}-in", [b"a"])
    (tmp_path / "job.py").write_text(JOB.format(name=name))
    write_both(broker.bootstrap_servers, name)
    verified = twopc("verify", "--map", str(tmp_path / "job.py"), "-b", broker.bootstrap_servers, "-o", "json")
    assert verified.code == 0, verified.err
    assert json.loads(verified.out)["held"]
