"""For every record, how many its new key has had: the stream goes through a topic of the job's own."""

import os

from twopc import Job, KafkaSink, KafkaSource

NEW_KEY = slice(9, 12)


def count(total: int | None, value: bytes) -> tuple[int, bytes]:
    """Return the new state of the key and what to emit."""
    total = (total or 0) + 1
    return total, b"%d" % total


job = Job(os.environ.get("BENCHMARK_NAME", "rekeyed-count"))
(
    job.source(KafkaSource(os.environ.get("BENCHMARK_SOURCE", "in")))
    .key_by(lambda value: value[NEW_KEY], name="by-new-key")
    .stateful_map(count, name="count")
    .sink(KafkaSink(os.environ.get("BENCHMARK_TARGET", "out")))
)
