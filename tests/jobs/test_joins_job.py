"""Orders joined with a table of customers on brokers, through kill -9: each meets who was there by event time."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.jobs.slow_job import SlowJob
from twopc.faults.armed_faults import ArmedFault
from twopc.faults.points import CrashPoint
from twopc.testing.broker import Broker
from twopc.testing.topics import Write, create_topic, produce, read_topic

pytestmark = pytest.mark.drill

SINKS = ("out", "then", "waited", "near", "both")
KEYS, PARTITIONS, ORDERS, CHANGES = 9, 4, 2_000, 600

JOB = """
from twopc import Job, Json, KafkaSink, KafkaSource

job = Job(name)
orders = job.source(KafkaSource(f"{name}-orders", value=Json()), timestamp=lambda order: order["at"])
customers = job.source(KafkaSource(f"{name}-customers", value=Json()), timestamp=lambda change: change["at"])

def enriched(order, customer):
    return {**order, "name": None if customer is None else customer["name"]}

def near(order, change):
    return [order["at"], None if change is None else change["at"]]

def both(order, customer):
    return [None if order is None else order["at"], None if customer is None else customer["at"]]

slow = orders.map(slowly)
known = customers.table("customers")
slow.join(known, enriched, how="left").sink(KafkaSink(f"{name}-out", value=Json()))
slow.join(customers, near, how="left", within="100ms", name="near").sink(KafkaSink(f"{name}-near", value=Json()))
slow.join_as_of(known, enriched, keep="1h", how="left", name="then").sink(KafkaSink(f"{name}-then", value=Json()))
slow.join_as_of(known, enriched, keep="1h", grace="100ms", how="left", name="waited").sink(
    KafkaSink(f"{name}-waited", value=Json())
)
last = slow.table("last").join(known, both, how="outer", name="both")
last.changes().sink(KafkaSink(f"{name}-both", value=Json()))
"""


@pytest.mark.proof
def test_every_order_meets_the_customer_of_its_time_through_kills(
    broker: Broker, topic: Callable[[], str], tmp_path: Path
) -> None:
    name = topic()
    for suffix in ("orders", "customers", *SINKS):
        create_topic(broker.bootstrap_servers, f"{name}-{suffix}", PARTITIONS)
    dice = random.Random(17)
    # Times are of one kind of number each, so that no two are equal.
    orders = [(2 * at, dice.randrange(KEYS)) for at in sorted(dice.sample(range(10_000), ORDERS))]
    changes = [(2 * at + 1, dice.randrange(KEYS)) for at in sorted(dice.sample(range(10_000), CHANGES))]
    produce(broker.bootstrap_servers, f"{name}-orders", (write(key, {"at": at}) for at, key in orders))
    produce(
        broker.bootstrap_servers,
        f"{name}-customers",
        (write(key, {"at": at, "name": f"{key}-{at}"}) for at, key in changes),
    )
    job = SlowJob(broker.bootstrap_servers, name, tmp_path, JOB, seconds=0.003)
    job.survive(ArmedFault(CrashPoint.AFTER_COMMIT, checkpoint=2), ArmedFault(CrashPoint.BEFORE_RESTORE))
    latest: dict[int, str] = {}
    expected: list[tuple[int, str | None]] = []
    waited: list[tuple[int, str | None]] = []
    for at, key in sorted([*orders, *changes]):
        if at % 2:
            latest[key] = f"{key}-{at}"
        else:
            expected.append((at, latest.get(key)))
            waited += expected[-1:] if at + 100 <= stream_time(orders, changes, key) else []
    for suffix, of_sink in (("out", expected), ("then", expected), ("waited", waited)):
        found = [json.loads(record.value or b"") for record in read_topic(broker.bootstrap_servers, f"{name}-{suffix}")]
        assert sorted((each["at"], each["name"]) for each in found) == of_sink
    pairs = [json.loads(record.value or b"") for record in read_topic(broker.bootstrap_servers, f"{name}-near")]
    assert sorted(map(str, pairs)) == sorted(map(str, near(orders, changes)))
    of_both: dict[int, list[list[int | None]]] = {key: [[None, None]] for key in range(KEYS)}
    for at, key in sorted([*orders, *changes]):
        order, change = of_both[key][-1]
        of_both[key].append([order, at] if at % 2 else [at, change])
    told = read_topic(broker.bootstrap_servers, f"{name}-both")
    for key, expected_of_key in of_both.items():
        found_of_key = [json.loads(record.value or b"") for record in told if record.key == b"k%d" % key]
        assert found_of_key == expected_of_key[1:]


def near(orders: list[tuple[int, int]], changes: list[tuple[int, int]]) -> list[list[int | None]]:
    """Return each order with each change of its key within 100 ms, or alone once the stream time is past those."""
    found: list[list[int | None]] = []
    for at, key in orders:
        met = [other for other, same in changes if same == key and abs(other - at) <= 100]
        is_over = at + 100 < stream_time(orders, changes, key)
        found += [[at, other] for other in met] or ([[at, None]] if is_over else [])
    return found


def stream_time(orders: list[tuple[int, int]], changes: list[tuple[int, int]], key: int) -> int:
    """Return where the stream time of the partition of a key ends."""
    return max(time for time, other in (*orders, *changes) if other % PARTITIONS == key % PARTITIONS)


def write(key: int, value: dict[str, object]) -> Write:
    return Write(json.dumps(value).encode(), key=b"k%d" % key, partition=key % PARTITIONS)


def test_topics_of_different_partition_counts_are_refused_by_name_at_the_start(
    broker: Broker, topic: Callable[[], str], tmp_path: Path
) -> None:
    name = topic()
    for suffix, partitions in (("orders", 4), ("customers", 3), *((sink, 1) for sink in SINKS)):
        create_topic(broker.bootstrap_servers, f"{name}-{suffix}", partitions)
    refused = SlowJob(broker.bootstrap_servers, name, tmp_path, JOB).run()
    assert refused.code == 2
    assert f"({name}-customers: 3, {name}-orders: 4)" in refused.err
