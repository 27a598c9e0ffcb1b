"""Two topics as one stream, which goes on to two: orders of the web and of the app, all of them, and the large ones.

    twopc run examples/two_sources.py --explain        shows how the operators are connected, and runs nothing

Both output topics are written in one transaction: a reader sees an order in both, or in none.
"""

from twopc import Job, Json, KafkaSink, KafkaSource

job = Job("two-sources")
web = job.source(KafkaSource("orders-web", value=Json()), name="web")
app = job.source(KafkaSource("orders-app", value=Json()), name="app").filter(lambda order: not order.get("test"))
orders = web.merge(app, name="orders")
orders.sink(KafkaSink("orders-all", value=Json()), name="all")
orders.filter(lambda order: order["cents"] >= 10_000).sink(KafkaSink("orders-large", value=Json()), name="large")
