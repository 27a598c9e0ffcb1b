"""Warms the executors that run no subtask, so that a new attempt there waits for no class, and no import of Python.

A first task costs an executor three to five seconds on a busy machine, and a fault makes that the job's. So a small job
of Spark's runs on free slots once an attempt is well, and again where executors have come. It takes no slot that an
attempt waits for: it runs only beside one.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from typing import Any

from pyspark.sql import SparkSession

from twopc.spark.slots import SlotWatch, Spare

LOOK_SECONDS = 5.0
MOST_TASKS = 16
"""No fault takes more executors at once than an attempt can wait for."""

DESCRIPTION = "spare executors load Python"

log = logging.getLogger(__name__)


class Warmth:
    """The executors that are warm, and whether it is time for the others; pure."""

    def __init__(self) -> None:
        self._seen: Spare | None = None
        self._warm: frozenset[str] = frozenset()

    def tasks(self, spare: Spare) -> int:
        """Take in what is spare now; return how many tasks are to warm it, which count as done."""
        before, self._seen = self._seen, spare
        # The same at two looks: an attempt that has just begun needs a machine that both share for itself.
        if spare != before or not spare.beside_others or spare.slots == 0 or spare.executors <= self._warm:
            return 0
        # Even where they fail: of a host that lacks something the attempt tells that comes to it.
        self._warm |= spare.executors
        return min(spare.slots, MOST_TASKS)


class SpareExecutors:
    """Those of one session, looked at until it is closed; whatever goes wrong here is nothing to the job."""

    def __init__(self, session: SparkSession, slots: SlotWatch) -> None:
        self._session = session
        self._slots = slots
        self._closed = threading.Event()
        threading.Thread(target=self._run, name="twopc-spare-executors", daemon=True).start()

    def close(self) -> None:
        """Warm no more."""
        self._closed.set()

    def _run(self) -> None:
        warmth = Warmth()
        while not self._closed.wait(LOOK_SECONDS):
            try:
                if tasks := warmth.tasks(self._slots.spare()):
                    self._warm(tasks)
            except Exception as error:  # noqa: BLE001 - a session that is stopped meanwhile may say anything
                log.debug("spare executors were not warmed: %s", error)

    def _warm(self, tasks: int) -> None:
        self._session.sparkContext.setJobGroup("twopc-spare-executors", DESCRIPTION, interruptOnCancel=True)
        self._session.range(0, tasks, 1, tasks).mapInArrow(load, "id long").collect()


def load(batches: Iterator[Any]) -> Iterator[Any]:
    """Import what a subtask needs, in an executor; what is imported with this module is loaded too."""
    import twopc.spark.task  # noqa: F401
    from twopc import Job, KafkaSink, KafkaSource  # noqa: F401

    yield from batches
