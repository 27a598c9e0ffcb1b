"""The number of each record, with that of the record of another topic that is at most half a second apart."""

import os

from twopc import Bytes, Job, KafkaSink, KafkaSource


def both(value: bytes, other: bytes) -> bytes:
    """Return the two numbers."""
    return value[:12] + b" " + other


job = Job(os.environ.get("BENCHMARK_NAME", "interval-join"))
others = job.source(KafkaSource(os.environ.get("BENCHMARK_SECOND") or "others"))
(
    job.source(KafkaSource(os.environ.get("BENCHMARK_SOURCE", "in")))
    .join(others, both, within="500ms", states=(Bytes(), Bytes()), name="pairs")
    .sink(KafkaSink(os.environ.get("BENCHMARK_TARGET", "out")))
)
