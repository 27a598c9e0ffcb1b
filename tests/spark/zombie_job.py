"""The job that zombies are made of: a running count per key; each value says which process wrote it."""

import os
import time

from twopc import Job, KafkaSink, KafkaSource

SECONDS_PER_RECORD = 0.001


def count(total: int | None, value: bytes) -> tuple[int, bytes]:
    """Count the records of the key; emit the value, the count and the process."""
    time.sleep(SECONDS_PER_RECORD)
    total = (total or 0) + 1
    return total, b"%s:%d:%d" % (value, total, os.getpid())


job = Job(os.environ["ZOMBIE_JOB"])
job.source(KafkaSource(f"{job.name}-in")).stateful_map(count, name="count").sink(KafkaSink(f"{job.name}-out"))
