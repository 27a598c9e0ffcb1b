"""The job that is drilled: a running count per key. The real run waits for its checkpoints, so that there are some."""

import os
import time
from pathlib import Path

from twopc import Job, KafkaSink, KafkaSource

NAME = os.environ["DRILLED_JOB"]
WATCHED = os.environ.get("DRILLED_CHECKPOINTS", "")
PAUSE_EVERY = 50
RECORDS_A_CHECKPOINT = 200
PAUSE_SECONDS, MOST_AHEAD = 0.1, 5
seen = [0]


def keep_pace() -> None:
    """Sleep where the records are ahead of the checkpoints, the longer the further."""
    seen[0] += 1
    if WATCHED and seen[0] % PAUSE_EVERY == 0:
        taken = len(list(Path(WATCHED).glob("chk-*/metadata.json")))
        time.sleep(PAUSE_SECONDS * min(max(0, seen[0] // RECORDS_A_CHECKPOINT - taken), MOST_AHEAD))


def count(total: int | None, value: bytes) -> tuple[int, bytes]:
    """Count the records of the key; emit the value and the count."""
    keep_pace()
    total = (total or 0) + 1
    return total, b"%s:%d" % (value, total)


job = Job(NAME)
job.source(KafkaSource(f"{NAME}-in")).stateful_map(count, name="count").sink(KafkaSink(f"{NAME}-out"))
