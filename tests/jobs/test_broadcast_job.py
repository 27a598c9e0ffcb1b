"""Orders joined with a broadcast table of products on brokers, through kill -9: each order once, with its product."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.jobs.slow_job import SlowJob
from tests.kafka.kit import eventually, grow_topic
from twopc.faults.armed_faults import ArmedFault
from twopc.faults.points import CrashPoint
from twopc.testing.broker import Broker
from twopc.testing.topics import Write, create_topic, produce, read_topic

pytestmark = pytest.mark.drill

PARTITIONS, PRODUCTS, ORDERS = 4, 50, 1_000

GROWING = """
from twopc import Job, KafkaSink, KafkaSource, String

job = Job("{name}")
orders = job.source(KafkaSource("{name}-orders", value=String()))
products = job.source(KafkaSource("{name}-products", key=String(), value=String(), discovery="200ms"))
table = products.table("products", broadcast=True)
joined = orders.join(table, lambda order, product: product or "none", key=str, how="left")
joined.sink(KafkaSink("{name}-out", value=String()))
"""

JOB = """
from twopc import Job, Json, KafkaSink, KafkaSource, String

job = Job(name)
orders = job.source(KafkaSource(f"{name}-orders", value=Json()))
products = job.source(KafkaSource(f"{name}-products", key=String(), value=Json()))

def named(order, product):
    return {**order, "name": None if product is None else product["name"]}

def by_product(order):
    return order["product"]

joined = orders.map(slowly).join(products.table("products", broadcast=True), named, key=by_product, how="left")
joined.sink(KafkaSink(f"{name}-out", value=Json()))
"""


@pytest.mark.proof
def test_every_order_meets_its_product_once_through_kills(
    broker: Broker, topic: Callable[[], str], tmp_path: Path
) -> None:
    name = topic()
    for suffix, partitions in (("orders", PARTITIONS), ("products", 3), ("out", PARTITIONS)):
        create_topic(broker.bootstrap_servers, f"{name}-{suffix}", partitions)
    # The last product is deleted again; an older value of each stands before the one that counts.
    written = [(n, {"name": f"{age} {n}"}) for age in ("old", "new") for n in range(PRODUCTS)] + [(PRODUCTS - 1, None)]
    produce(
        broker.bootstrap_servers,
        f"{name}-products",
        (
            Write(None if value is None else json.dumps(value).encode(), key=b"p%d" % n, partition=n % 3)
            for n, value in written
        ),
    )
    produce(
        broker.bootstrap_servers,
        f"{name}-orders",
        (
            Write(json.dumps({"n": n, "product": f"p{n % PRODUCTS}"}).encode(), partition=n % PARTITIONS)
            for n in range(ORDERS)
        ),
    )
    job = SlowJob(broker.bootstrap_servers, name, tmp_path, JOB)
    job.survive(ArmedFault(CrashPoint.AFTER_COMMIT, checkpoint=2), ArmedFault(CrashPoint.BEFORE_RESTORE))
    found = [json.loads(record.value or b"") for record in read_topic(broker.bootstrap_servers, f"{name}-out")]
    names = {n: None if n == PRODUCTS - 1 else f"new {n}" for n in range(PRODUCTS)}
    assert sorted((each["n"], each["name"]) for each in found) == [(n, names[n % PRODUCTS]) for n in range(ORDERS)]


def test_a_topic_that_is_not_there_is_named_at_the_start(
    broker: Broker, topic: Callable[[], str], tmp_path: Path
) -> None:
    name = topic()
    for suffix in ("orders", "out"):
        create_topic(broker.bootstrap_servers, f"{name}-{suffix}", PARTITIONS)
    refused = SlowJob(broker.bootstrap_servers, name, tmp_path, JOB).run()
    assert refused.code == 2
    assert f"topic '{name}-products' isn't there" in refused.err


def test_a_partition_that_a_table_gets_while_the_job_runs_is_looked_up_too(
    broker: Broker, topic: Callable[[], str], tmp_path: Path
) -> None:
    name, servers = topic(), broker.bootstrap_servers
    for suffix in ("orders", "products", "out"):
        create_topic(servers, f"{name}-{suffix}")
    produce(servers, f"{name}-products", [Write(b"an old one", key=b"old")])
    (tmp_path / "job.py").write_text(GROWING.format(name=name))
    options = ["--checkpoint-dir", str(tmp_path / "checkpoints"), "--host", "process", "--checkpoint-interval", "200ms"]
    command = [sys.executable, "-m", "twopc", "run", str(tmp_path / "job.py"), "-b", servers, *options]

    def is_found(product: bytes, order: bytes) -> bool:
        produce(servers, f"{name}-orders", [order])
        return product in {record.value for record in read_topic(servers, f"{name}-out")}

    with subprocess.Popen(command) as run:
        try:
            eventually(lambda: is_found(b"an old one", b"old"))
            grow_topic(servers, f"{name}-products", 2)
            produce(servers, f"{name}-products", [Write(b"a new one", key=b"new", partition=1)])
            eventually(lambda: is_found(b"a new one", b"new"))
        finally:
            run.kill()
