"""A job of two sources and three sinks: what the web sends is counted by key, and some of all goes to a topic more.

What the last sink writes depends on the order in which records of both sources meet: a drill has them in that of their
times, and of what the job itself wrote nothing can tell what is right.
"""

import os

from twopc import Job, KafkaSink, KafkaSource

NAME = os.environ["DRILLED_JOB"]


def count(total: int | None, value: bytes) -> tuple[int, bytes]:
    """Count the records of the key; emit the value and the count."""
    total = (total or 0) + 1
    return total, b"%s:%d" % (value, total)


job = Job(NAME)
web = job.source(KafkaSource(f"{NAME}-web"), name="web").stateful_map(count, name="count")
both = web.merge(job.source(KafkaSource(f"{NAME}-app"), name="app"), name="both")
both.sink(KafkaSink(f"{NAME}-all"), name="all")
both.filter(lambda value: value.startswith(b"5")).sink(KafkaSink(f"{NAME}-fives"), name="fives")
both.stateful_map(count, name="together").sink(KafkaSink(f"{NAME}-met"), name="met")
