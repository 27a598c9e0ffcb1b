"""Broadcast tables in a run in memory: every subtask has all of one, before its first record and through crashes."""

from __future__ import annotations

from typing import Any

import pytest

from twopc import (
    ConfigurationError,
    Fail,
    Job,
    Json,
    KafkaSink,
    KafkaSource,
    Skip,
    StartingOffsets,
    String,
    Tumbling,
)
from twopc.connect import ErrorPolicy
from twopc.errors import UserCodeError
from twopc.testing import MemoryRun

ORDERS = 12

FAIL = Fail()


def named(order: Any, product: Any) -> Any:
    return {**order, "name": None if product is None else product["name"]}


def by_product(order: Any) -> Any:
    return order["product"]


def enriching(on_error: ErrorPolicy = FAIL) -> Job:
    job = Job("enrich")
    # Where it would begin as a stream does not matter.
    source = KafkaSource("products", key=String(), value=Json(), start=StartingOffsets.latest())
    products = job.source(source, name="products", on_error=on_error)
    orders = job.source(KafkaSource("orders", value=Json()))
    table = products.filter(lambda product: product is None or product["name"] != "hidden").table("t", broadcast=True)
    return orders.join(table, named, key=by_product, how="left").sink(KafkaSink("named", value=Json()))


def names(run: MemoryRun) -> list[tuple[int, str | None]]:
    return sorted((record.value["n"], record.value["name"]) for record in run.read("named"))


def order(run: MemoryRun, n: int, product: str) -> None:
    run.send("orders", {"n": n, "product": product}, b"%d" % n)


@pytest.mark.parametrize("parallelism", [1, 3])
def test_every_subtask_has_all_of_the_table_before_its_first_record(parallelism: int) -> None:
    with MemoryRun(enriching(), partitions=4, parallelism=parallelism) as run:
        for n in range(5):
            run.send("products", {"name": f"product {n}"}, f"p{n}")
        run.crash()
        for n in range(ORDERS):
            order(run, n, f"p{n % 6}")
        run.checkpoint()
        assert names(run) == [(n, None if n % 6 == 5 else f"product {n % 6}") for n in range(ORDERS)]


def test_a_table_is_followed_while_the_job_runs() -> None:
    with MemoryRun(enriching(), partitions=4, parallelism=2) as run:
        for n, name in enumerate(("first", "second")):
            run.send("products", {"name": name}, "p")
            order(run, n, "p")
            run.checkpoint()
        run.send("products", None, "p")
        order(run, 2, "p")
        run.checkpoint()
        assert names(run) == [(0, "first"), (1, "second"), (2, None)]


@pytest.mark.parametrize("moment", ["processing", "pre-commit", "completion"])
def test_orders_go_out_once_through_a_crash_and_meet_what_was_read_before_any_checkpoint(moment: Any) -> None:
    with MemoryRun(enriching(), partitions=2, parallelism=2) as run:
        run.send("products", {"name": "pen"}, "p")
        order(run, 0, "p")
        run.checkpoint()
        order(run, 1, "p")
        run.crash(moment)
        run.send("products", {"name": "ink"}, "q")
        order(run, 2, "q")
        run.checkpoint()
        assert names(run) == [(0, "pen"), (1, "pen"), (2, "ink")]


def test_a_table_may_be_of_a_part_of_a_topic() -> None:
    with MemoryRun(enriching()) as run:
        run.send("products", {"name": "hidden"}, "p")
        order(run, 0, "p")
        run.checkpoint()
        assert names(run) == [(0, None)]


def test_a_record_of_the_table_that_goes_wrong_ends_the_job_at_every_start() -> None:
    with MemoryRun(enriching()) as run:
        run.send_raw("products", b"{", b"p")
        order(run, 0, "p")
        for _ in range(2):
            with pytest.raises(UserCodeError, match="products"):
                run.checkpoint()


def test_or_is_left_out_by_the_policy_of_its_source() -> None:
    with MemoryRun(enriching(Skip())) as run:
        run.send("products", {"name": "pen"}, "p")
        run.send_raw("products", b"{", b"p")
        run.send("products", {"name": "ink"}, "q")
        order(run, 0, "p")
        order(run, 1, "q")
        run.checkpoint()
        assert names(run) == [(0, "pen"), (1, "ink")]


def test_time_passes_behind_a_join_with_a_broadcast_table() -> None:
    job = Job("enrich")
    table = job.source(KafkaSource("products", value=Json())).table("t", broadcast=True)
    orders = job.source(KafkaSource("orders", value=Json())).join(table, named, how="left")
    orders.window(Tumbling("1m")).count(name="n").final().map(lambda window: window.value).sink(
        KafkaSink("counts", value=Json())
    )
    with MemoryRun(job) as run:
        run.send("orders", {"n": 1}, b"a", timestamp=0)
        run.send("orders", {"n": 2}, b"a", timestamp=1)
        run.advance("1m")
        run.checkpoint()
        assert [record.value for record in run.read("counts")] == [2]


def test_a_topic_may_be_read_as_a_table_and_as_a_stream() -> None:
    job = Job("enrich")
    table = job.source(KafkaSource("orders", value=Json())).table("t", broadcast=True)
    orders = job.source(KafkaSource("orders", value=Json()))
    orders.join(table, lambda order, last: [order, last]).sink(KafkaSink("pairs", value=Json()))
    with MemoryRun(job, partitions=2, parallelism=2) as run:
        for n in range(3):
            run.send("orders", n, b"a")
        run.checkpoint()
        run.crash()
        run.send("orders", 3, b"a")
        run.checkpoint()
        assert [record.value for record in run.read("pairs")] == [[0, 2], [1, 2], [2, 2], [3, 3]]


def test_the_table_has_no_state_in_checkpoints() -> None:
    with MemoryRun(enriching()) as run, pytest.raises(ConfigurationError, match=r"operator 't' .* keeps no state"):
        run.state("t", "p")
