"""Joins in a run in memory: what meets what, through crashes and at every parallelism."""

from __future__ import annotations

from typing import Any

import pytest

from tests.testing.memory.test_crashes import AFTER
from twopc import Job, Json, KafkaSink, KafkaSource, String
from twopc.testing import MemoryRun
from twopc.testing.memory.run import Moment


def enriched(order: Any, customer: Any) -> Any:
    return {**order, "name": None if customer is None else customer["name"]}


def enriching() -> Job:
    job = Job("enrich")
    orders = job.source(KafkaSource("orders", value=Json()))
    customers = job.source(KafkaSource("customers", value=Json())).table("customers")
    return orders.join(customers, enriched, how="left").sink(KafkaSink("enriched", value=Json()))


def names(run: MemoryRun) -> list[tuple[int, str | None]]:
    return [(record.value["n"], record.value["name"]) for record in run.read("enriched")]


@pytest.mark.parametrize("parallelism", [1, 3])
def test_an_order_has_the_name_of_its_customer_through_a_crash(parallelism: int) -> None:
    with MemoryRun(enriching(), partitions=4, parallelism=parallelism) as run:
        for n in range(9):
            run.send("customers", {"name": f"c{n}"}, b"%d" % n)
        run.checkpoint()
        for n in range(10):
            run.send("orders", {"n": n}, b"%d" % n)
        run.crash()
        run.checkpoint()
        assert sorted(names(run)) == [(n, f"c{n}") for n in range(9)] + [(9, None)]
        assert run.state("customers", b"3") == {"name": "c3"}


def test_a_tombstone_deletes_and_a_change_of_the_table_puts_nothing_out() -> None:
    with MemoryRun(enriching()) as run:
        run.send("customers", {"name": "a"}, b"a")
        run.checkpoint()
        run.send("orders", {"n": 1}, b"a")
        run.checkpoint()
        run.send("customers", None, b"a")
        run.crash("completion")
        run.checkpoint()
        run.send("orders", {"n": 2}, b"a")
        run.checkpoint()
        assert names(run) == [(1, "a"), (2, None)]
        assert run.state("customers", b"a") is None


def test_what_was_sent_together_meets_in_the_order_of_event_time() -> None:
    with MemoryRun(enriching()) as run:
        for n, at in enumerate((10, 25, 40)):
            run.send("orders", {"n": n}, b"a", timestamp=at)
        run.send("customers", {"name": "second"}, b"a", timestamp=30)
        run.send("customers", {"name": "third"}, b"a", timestamp=41)
        run.send("customers", {"name": "first"}, b"b", timestamp=42)
        run.checkpoint()
        assert names(run) == [(0, None), (1, None), (2, "second")]


@pytest.mark.parametrize("after", AFTER)
def test_a_table_of_two_tables_goes_on_behind_a_crash_and_is_looked_into(after: Moment) -> None:
    job = Job("profiles")
    users, places, clicks = (
        job.source(KafkaSource(topic, key=String(), value=Json())) for topic in ("users", "places", "clicks")
    )
    profiles = users.table("users").join(places.table("places"), lambda user, place: f"{user} of {place}", name="live")
    profiles.changes().sink(KafkaSink("profiles", key=String(), value=Json()))
    clicks.join(profiles, lambda click, profile: f"{click} by {profile}").sink(KafkaSink("out", value=Json()))
    kept = {str(state) for state in job.definition().state_serdes}
    assert kept >= {"live/left", "live/right", "live-table"}
    assert not kept & {"users", "places"}
    with MemoryRun(job) as run:
        run.send("users", "ann", "a", timestamp=1)
        run.send("places", "york", "a", timestamp=2)
        run.checkpoint()
        run.send("places", "rome", "a", timestamp=3)
        run.send("clicks", "one", "a", timestamp=4)
        run.crash(after)
        run.checkpoint()
        run.send("users", None, "a", timestamp=5)
        run.send("clicks", "two", "a", timestamp=6)
        run.checkpoint()
        assert [record.value for record in run.read("profiles")] == ["ann of york", "ann of rome", None]
        assert [record.value for record in run.read("out")] == ["one by ann of rome"]


@pytest.mark.parametrize("after", AFTER)
def test_a_join_as_of_a_time_goes_on_behind_a_crash_and_of_one_time_the_table_goes_first(after: Moment) -> None:
    job = Job("priced")
    orders, prices = (job.source(KafkaSource(topic, key=String(), value=Json())) for topic in ("orders", "prices"))
    orders.join_as_of(prices.table("prices"), lambda order, price: [order, price], keep="1h", how="left").sink(
        KafkaSink("priced", value=Json())
    )
    with MemoryRun(job) as run:
        run.send("prices", 10, "a", timestamp=1_000)
        run.send("prices", 20, "a", timestamp=5_000)
        run.checkpoint()
        run.send("orders", "new", "a", timestamp=5_000)
        run.send("orders", "old", "a", timestamp=4_999)
        run.send("prices", 30, "a", timestamp=5_000)
        run.crash(after)
        run.checkpoint()
        assert [record.value for record in run.read("priced")] == [["new", 30], ["old", 10]]
        assert [version.value for version in run.state("orders-join-prices/versions", "a")] == [10, 20, 30]


@pytest.mark.parametrize("after", AFTER)
def test_what_waits_for_its_grace_is_joined_once_behind_a_crash_with_what_has_come_by_then(after: Moment) -> None:
    job = Job("priced")
    orders, prices = (job.source(KafkaSource(topic, key=String(), value=Json())) for topic in ("orders", "prices"))
    table = prices.table("prices")
    orders.join_as_of(table, lambda order, price: [order, price], keep="1h", grace="1s", state=Json()).sink(
        KafkaSink("priced", value=Json())
    )
    with MemoryRun(job) as run:
        run.send("orders", "one", "a", timestamp=5_000)
        run.checkpoint()
        run.send("prices", 10, "a", timestamp=4_000)
        run.send("prices", 20, "a", timestamp=5_500)
        run.crash(after)
        run.checkpoint()
        assert (run.read("priced"), [waiting.value for waiting in run.state("orders-join-prices/waiting", "a")]) == (
            [],
            ["one"],
        )
        run.send("orders", "two", "a", timestamp=6_000)
        run.crash(after)
        run.checkpoint()
        assert [(record.value, record.timestamp) for record in run.read("priced")] == [(["one", 10], 5_000)]


def test_of_records_of_one_time_the_tables_goes_first() -> None:
    with MemoryRun(enriching()) as run:
        run.send("orders", {"n": 1}, b"a")
        run.send("customers", {"name": "a"}, b"a")
        run.checkpoint()
        assert names(run) == [(1, "a")]


def test_the_event_time_is_what_the_job_says() -> None:
    job = Job("enrich")
    orders = job.source(KafkaSource("orders", value=Json()), timestamp=lambda order: order["n"])
    customers = job.source(KafkaSource("customers", value=Json()), timestamp=lambda customer: customer["at"])
    orders.join(customers.table("customers"), enriched, how="left").sink(KafkaSink("enriched", value=Json()))
    with MemoryRun(job) as run:
        run.send("orders", {"n": 1}, b"a")
        run.send("orders", {"n": 3}, b"a")
        run.send("customers", {"name": "a", "at": 2}, b"a")
        run.checkpoint()
        assert names(run) == [(1, None), (3, "a")]


def test_a_batch_of_many_meets_as_one_record_after_the_other_would() -> None:
    with MemoryRun(enriching(), partitions=3, parallelism=2) as run:
        for n in range(3_000):
            key = b"%d" % (n % 7)
            run.send("orders", {"n": n}, key, timestamp=10 * n + 5)
            if n % 11 == 0:
                run.send("customers", {"name": f"{n}"}, key, timestamp=10 * n)
        run.checkpoint()
        latest: dict[int, str] = {}
        expected = {}
        for n in range(3_000):
            if n % 11 == 0:
                latest[n % 7] = f"{n}"
            expected[n] = latest.get(n % 7)
        assert dict(names(run)) == expected


def shipping(how: Any) -> Job:
    job = Job("ship")
    orders, payments = (job.source(KafkaSource(name, value=Json()), name=name) for name in ("orders", "payments"))
    paid = orders.join(payments, lambda order, payment: [order, payment], within="1m", how=how, name="paid")
    return paid.stateful_map(lambda seen, both: ((seen or 0) + 1, both), name="seen").sink(
        KafkaSink("out", value=Json())
    )


@pytest.mark.parametrize("after", ["processing", "pre-commit", "completion"])
def test_two_streams_meet_within_a_time_through_a_crash(after: Any) -> None:
    with MemoryRun(shipping("left"), partitions=2, parallelism=2) as run:
        for key in (b"a", b"b", b"c"):
            run.send("orders", key.decode(), key, timestamp=10_000)
        run.checkpoint()
        run.send("payments", "late", b"a", timestamp=70_000)
        run.crash(after)
        run.send("payments", "too late", b"b", timestamp=70_001)
        run.checkpoint()
        for key in (b"a", b"b", b"c"):
            run.send("payments", "next", key, timestamp=200_000)
        run.crash(after)
        run.checkpoint()
        found = sorted(map(str, (record.value for record in run.read("out"))))
        assert found == ["['a', 'late']", "['b', None]", "['c', None]"]
        assert run.state("paid/left", b"a") is None
