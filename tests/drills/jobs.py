"""The job that the drills run: a running count per key, slow enough to be killed between checkpoints."""

import os
import time

from twopc import Job, KafkaSink, KafkaSource

SECONDS_PER_RECORD = float(os.environ.get("DRILL_SECONDS_PER_RECORD", "0.001"))


def count(total: int | None, value: bytes) -> tuple[int, bytes]:
    """Count the records of the key; emit the value and the count."""
    time.sleep(SECONDS_PER_RECORD)
    total = (total or 0) + 1
    return total, b"%s:%d" % (value, total)


job = Job(os.environ["DRILL_JOB"])
job.source(KafkaSource(os.environ["DRILL_INPUT"])).stateful_map(count, name="count").sink(
    KafkaSink(os.environ["DRILL_OUTPUT"])
)
