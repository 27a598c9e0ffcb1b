"""One topic into three: large orders, small ones, and whatever can't be read or processed, all in one transaction."""

from twopc import DeadLetter, Job, Json, KafkaSink, KafkaSource

job = Job("route", on_error=DeadLetter("orders-dead"))
orders = job.source(KafkaSource("orders", value=Json())).map(
    lambda order: order | {"cents": round(order["total"] * 100)}
)
orders.filter(lambda order: order["cents"] >= 10_000).sink(KafkaSink("orders-large", value=Json()))
orders.filter(lambda order: order["cents"] < 10_000).sink(KafkaSink("orders-small", value=Json()))
