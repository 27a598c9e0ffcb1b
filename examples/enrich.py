"""Orders joined with the latest version of their customer; both topics are keyed by the customer."""

from typing import Any

from twopc import Job, Json, KafkaSink, KafkaSource


def enriched(order: dict[str, Any], customer: dict[str, Any] | None) -> dict[str, Any]:
    return {**order, "name": None if customer is None else customer["name"]}


job = Job("enrich")
orders = job.source(KafkaSource("orders", value=Json()))
customers = job.source(KafkaSource("customers", value=Json())).table("customers")
orders.join(customers, enriched, how="left").sink(KafkaSink("orders-enriched", value=Json()))
