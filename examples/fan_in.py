"""Two topics with formats of their own, merged into one stream, counted per user over both."""

from twopc import Avro, Job, Json, KafkaSink, KafkaSource

VISIT = {
    "type": "record",
    "name": "Visit",
    "fields": [{"name": "user", "type": "string"}, {"name": "ms", "type": "long"}],
}

job = Job("fan-in")
web = job.source(KafkaSource("web", value=Json()), name="web").map(
    lambda visit: {"user": visit["user"], "ms": visit["ms"]}
)
app = job.source(KafkaSource("app", value=Avro(VISIT)), name="app")
(
    web.merge(app)
    .key_by(lambda visit: visit["user"], name="by-user")
    .stateful_map(lambda total, visit: ((total or 0) + visit["ms"],) * 2, name="total-ms")
    .sink(KafkaSink("ms-per-user", value=Json()))
)
