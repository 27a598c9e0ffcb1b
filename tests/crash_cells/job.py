"""The job of the drills: a running count per key, slow enough that some checkpoints fall into it on any machine.

It sleeps now and then, and longer the further it is ahead of the checkpoints: a busy machine is slow at those. It does
not where DRILL_PAUSE_SECONDS is 0. Where
DRILL_CHANGES says so, it has one operator of each other kind too (`every_operator.py`).
"""

import os
import time
from pathlib import Path

from twopc import Job, KafkaSink, KafkaSource
from twopc.protocol.layout import checkpoint_of_folder

RECORDS_A_PAUSE = 100
RECORDS_A_CHECKPOINT = 400
PAUSE_SECONDS = float(os.environ.get("DRILL_PAUSE_SECONDS", "0.008"))
PAUSE_AHEAD_SECONDS, MOST_AHEAD = 0.1, 5
FOLDER = Path(os.environ["TWOPC_CHECKPOINT_DIR"]) / os.environ["DRILL_JOB"]


def newest_checkpoint() -> int:
    """The greatest id that has a folder."""
    if not FOLDER.is_dir():
        return 0
    return max((checkpoint_of_folder(path.name) or 0 for path in FOLDER.iterdir()), default=0)


class Pace:
    """The progress of this process, in records and in checkpoints."""

    def __init__(self) -> None:
        self.seen = 0
        self.began = newest_checkpoint()

    def keep(self) -> None:
        """Count a record; sleep if it is time to."""
        self.seen += 1
        if PAUSE_SECONDS and self.seen % RECORDS_A_PAUSE == 0:
            ahead = self.seen // RECORDS_A_CHECKPOINT - (newest_checkpoint() - self.began)
            time.sleep(PAUSE_AHEAD_SECONDS * min(ahead, MOST_AHEAD) if ahead > 0 else PAUSE_SECONDS)


pace = Pace()


def paced(value: bytes) -> bytes:
    """Keep the pace."""
    pace.keep()
    return value


def count(total: int | None, value: bytes) -> tuple[int, bytes]:
    """Count the records of the key; emit the value and the count."""
    total = (total or 0) + 1
    return total, b"%s:%d" % (value, total)


job = Job(os.environ["DRILL_JOB"])
source = KafkaSource(os.environ["DRILL_INPUT"])
if "DRILL_CHANGES" in os.environ:
    from every_operator import add_operators, read  # type: ignore[import-not-found]

    numbers = read(job, source).map(paced)
    add_operators(job, numbers)
else:
    numbers = job.source(source).map(paced)
counted = numbers.stateful_map(count, name="count")
counted.sink(KafkaSink(os.environ["DRILL_OUTPUT"]))
if "DRILL_TABLE" in os.environ:
    from table_sink import TableSink

    counted.map(bytes.decode).sink(TableSink(os.environ["DRILL_TABLE"]), name="table")
