"""JSON: add a field; what can't be read goes to a topic of its own."""

import os

from twopc import DeadLetter, Job, Json, KafkaSink, KafkaSource

job = Job(
    os.environ.get("BENCHMARK_NAME", "dead-letters"), on_error=DeadLetter(os.environ.get("BENCHMARK_DEAD") or "dead")
)
(
    job.source(KafkaSource(os.environ.get("BENCHMARK_SOURCE", "in"), value=Json()))
    .map(lambda value: value | {"half": value["n"] // 2})
    .sink(KafkaSink(os.environ.get("BENCHMARK_TARGET", "out"), value=Json()))
)
