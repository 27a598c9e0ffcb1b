"""A job with a counter that is in no state: what it makes depends on how long its process has lived."""

import os
from itertools import count

from twopc import Job, KafkaSink, KafkaSource

NAME = os.environ["HIDDEN_JOB"]
numbers = count()


def number(value: bytes) -> bytes:
    return b"%s:%d" % (value, next(numbers))


job = Job(NAME)
job.source(KafkaSource(f"{NAME}-in")).map(number).sink(KafkaSink(f"{NAME}-out"))
