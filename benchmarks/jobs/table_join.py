"""The number of each record, with the name that a table has for its key."""

import os

from twopc import Bytes, Job, KafkaSink, KafkaSource


def named(value: bytes, name: bytes | None) -> bytes:
    """Return the number and the name."""
    return value[:12] + b" " + (name or b"")


job = Job(os.environ.get("BENCHMARK_NAME", "table-join"))
names = job.source(KafkaSource(os.environ.get("BENCHMARK_SECOND") or "table")).table("names", state=Bytes())
(
    job.source(KafkaSource(os.environ.get("BENCHMARK_SOURCE", "in")))
    .join(names, named, how="left")
    .sink(KafkaSink(os.environ.get("BENCHMARK_TARGET", "out")))
)
