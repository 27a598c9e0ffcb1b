"""Jobs of several processes on real topics, whose schemas a registry keeps."""

from __future__ import annotations

import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.jobs.slow_job import SlowJob
from tests.registry.kit import ORDER, ORDER_2, reading, writing
from twopc import SchemaRegistry
from twopc.faults.armed_faults import ArmedFault
from twopc.faults.points import CrashPoint
from twopc.testing import MemoryRegistry
from twopc.testing.broker import Broker
from twopc.testing.local_registry import LocalRegistry
from twopc.testing.topics import Write, create_topic, produce, read_topic

RECORDS = 20_000

JOB = f"""
from twopc import Job, KafkaSink, KafkaSource, NewTopic, SchemaRegistry

registry = SchemaRegistry(auto_register=True)
schema = {ORDER_2!r}
job = Job(name)
orders = job.source(KafkaSource(name, value=registry.avro(schema))).map(slowly)
orders.sink(KafkaSink(f"{{name}}-out", value=registry.avro(schema), create=NewTopic(partitions=2)))
"""


def orders(registry: SchemaRegistry, topic: str, count: int) -> Iterator[Write]:
    """Every other one is of the earlier version."""
    old, new = writing(registry.avro(ORDER), topic), writing(registry.avro(ORDER_2), topic)
    for number in range(count):
        value = {"id": number, "at": 0}
        data = new.serialize({**value, "note": "new"}) if number % 2 else old.serialize(value)
        yield Write(data, partition=number // 2 % 2)


def notes(registry: SchemaRegistry, servers: str, topic: str) -> Counter[tuple[int, str]]:
    """Return which orders are in a topic, with their notes."""
    reader = reading(registry.avro(), topic)
    values = [reader.deserialize(record.value) for record in read_topic(servers, topic)]
    return Counter((value["id"], value["note"]) for value in values)


def come_back(registry: MemoryRegistry) -> None:
    """Be there again some seconds after it was asked for the first time, which is answered with nothing."""
    with socket.create_server(("127.0.0.1", urlsplit(registry.url).port or 0)) as away:
        away.settimeout(120)
        away.accept()[0].close()
    time.sleep(4)
    registry.start()


@pytest.mark.drill
@pytest.mark.proof
def test_every_version_comes_out_once_although_a_subtask_was_killed(
    broker: Broker,
    topic: Callable[[], str],
    tmp_path: Path,
    real_registry: LocalRegistry,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    name, servers = topic(), broker.bootstrap_servers
    registry = SchemaRegistry(real_registry.url, auto_register=True)
    monkeypatch.setenv("TWOPC_SCHEMA_REGISTRY_URL", real_registry.url)
    create_topic(servers, name, 2)
    produce(servers, name, orders(registry, name, RECORDS))
    SlowJob(servers, name, tmp_path, JOB).survive(ArmedFault(CrashPoint.BEFORE_COMMIT, checkpoint=3, subtask=0))
    expected = Counter((number, "new" if number % 2 else "-") for number in range(RECORDS))
    assert notes(registry, servers, f"{name}-out") == expected


@pytest.mark.proof
@pytest.mark.broker
def test_a_registry_that_is_away_at_the_start_is_waited_for(
    broker: Broker,
    topic: Callable[[], str],
    tmp_path: Path,
    memory_registry: MemoryRegistry,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    name, servers = topic(), broker.bootstrap_servers
    registry = SchemaRegistry(memory_registry.url, auto_register=True)
    monkeypatch.setenv("TWOPC_SCHEMA_REGISTRY_URL", memory_registry.url)
    create_topic(servers, name, 2)
    produce(servers, name, orders(registry, name, 10))
    memory_registry.stop()
    back = threading.Thread(target=come_back, args=(memory_registry,))
    back.start()
    finished = SlowJob(servers, name, tmp_path, JOB).run()
    back.join()
    assert finished.code == 0, finished.err
    assert finished.err.count("does not answer") == 1
    assert notes(registry, servers, f"{name}-out") == Counter((n, "new" if n % 2 else "-") for n in range(10))


@pytest.mark.broker
def test_a_schema_that_is_not_compatible_ends_the_start_by_its_name(
    broker: Broker,
    topic: Callable[[], str],
    tmp_path: Path,
    memory_registry: MemoryRegistry,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    name, servers = topic(), broker.bootstrap_servers
    monkeypatch.setenv("TWOPC_SCHEMA_REGISTRY_URL", memory_registry.url)
    memory_registry.register(f"{name}-out-value", {**ORDER, "fields": [{"name": "id", "type": "string"}]})
    create_topic(servers, name, 2)
    finished = SlowJob(servers, name, tmp_path, JOB).run()
    assert finished.code == 2
    assert f"(shop.Order) is not compatible with what subject '{name}-out-value' has" in finished.err
    assert "Traceback" not in finished.err
