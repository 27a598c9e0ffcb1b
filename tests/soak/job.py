"""The job of the soak: a running count per key; each value says which process wrote it."""

import os
import uuid

from twopc import Job, KafkaSink, KafkaSource

WRITER = f"{os.getpid()}.{uuid.uuid4().hex[:6]}".encode()


def count(total: int | None, value: bytes) -> tuple[int, bytes]:
    """Count the records of the key; emit the value, the count and the process."""
    total = (total or 0) + 1
    return total, b"%s:%d:%s" % (value, total, WRITER)


job = Job(os.environ["SOAK_JOB"])
job.source(KafkaSource(f"{job.name}-in")).stateful_map(count, name="count").sink(KafkaSink(f"{job.name}-out"))
