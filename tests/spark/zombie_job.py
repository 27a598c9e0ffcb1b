"""The job that zombies are made of: a running count per key; each value says which process wrote it.

It waits at each record, and longer when a good part of the input is read and nobody has come to the crash point of a
checkpoint yet: a busy machine is slow at those.
"""

import os
import time

from twopc import Job, KafkaSink, KafkaSource

SECONDS_PER_RECORD, SLOWLY_SECONDS = 0.001, 0.01
SLOWLY_FROM = 1_000
AWAITED = os.environ.get("ZOMBIE_AWAITED", "")
"""The file that says that somebody has come there."""

seen = [0]


def keep_pace() -> None:
    seen[0] += 1
    slowly = AWAITED and seen[0] > SLOWLY_FROM and not os.path.exists(AWAITED)
    time.sleep(SLOWLY_SECONDS if slowly else SECONDS_PER_RECORD)


def count(total: int | None, value: bytes) -> tuple[int, bytes]:
    """Count the records of the key; emit the value, the count and the process."""
    keep_pace()
    total = (total or 0) + 1
    return total, b"%s:%d:%d" % (value, total, os.getpid())


job = Job(os.environ["ZOMBIE_JOB"])
job.source(KafkaSource(f"{job.name}-in")).stateful_map(count, name="count").sink(KafkaSink(f"{job.name}-out"))
