"""Inputs that meet by key and have different numbers of partitions: refused, with the step that mends it."""

from __future__ import annotations

import pytest

from twopc import Job, Json, KafkaSink, KafkaSource
from twopc.errors import ConfigurationError
from twopc.testing import MemoryRun

USERS, PARTITIONS = 12, {"orders": 4, "customers": 2}


def enriching(*, mended: bool) -> Job:
    job = Job("enrich")
    orders = job.source(KafkaSource("orders", value=Json()))
    customers = job.source(KafkaSource("customers", value=Json()))
    if mended:
        customers = customers.key_by(lambda customer: customer["id"], name="by-id", partitions=4)
    table = customers.table("customers")
    return orders.join(table, lambda order, customer: customer["id"], how="inner").sink(
        KafkaSink("enriched", value=Json())
    )


def test_the_refusal_names_the_topic_and_the_key_by_that_mends_it() -> None:
    named = r"customers: 2, orders: 4.*key_by\(\.\.\., partitions=4\) between customers and"
    with pytest.raises(ConfigurationError, match=named):
        MemoryRun(enriching(mended=False), partitions=PARTITIONS)


def test_with_that_key_by_every_record_meets_the_one_of_its_key() -> None:
    with MemoryRun(enriching(mended=True), partitions=PARTITIONS, parallelism=2) as run:
        for user in range(USERS):
            run.send("customers", {"id": f"u{user}"}, key=b"u%d" % user)
        run.checkpoint()
        for user in range(USERS):
            run.send("orders", {}, key=b"u%d" % user)
        run.checkpoint()
        assert sorted(record.value for record in run.read("enriched")) == sorted(f"u{user}" for user in range(USERS))
