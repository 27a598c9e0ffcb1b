"""A job whose dead letters nothing can judge, and whose other output all can."""

import os

from twopc import DeadLetter, Job, KafkaSink, KafkaSource

NAME = os.environ["DRILLED_JOB"]


def count(total: int | None, value: bytes) -> tuple[int, bytes]:
    """Count the records of the key; refuse every tenth."""
    if value.endswith(b"7"):
        raise LookupError(value)
    total = (total or 0) + 1
    return total, b"%s:%d" % (value, total)


job = Job(NAME, on_error=DeadLetter(f"{NAME}-dead"))
job.source(KafkaSource(f"{NAME}-in")).stateful_map(count, name="count").sink(KafkaSink(f"{NAME}-out"))
