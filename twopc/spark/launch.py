"""Submits the subtasks as a barrier stage, and tells how the stage ended, or what it waits for.

Spark doesn't retry a failed barrier result stage, and would not know how to recover: the driver submits a new stage.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from twopc.errors import ConfigurationError, TwoPhaseCommitError, Unavailable
from twopc.graph import JobDefinition
from twopc.loader.job_loader import JobText
from twopc.protocol.codec import to_json
from twopc.runtime.spec import SubtaskSpec
from twopc.spark.master import is_local
from twopc.spark.pickled_job import PickledJob
from twopc.spark.reason import reason_of
from twopc.spark.session import SessionHolder
from twopc.spark.slots import SlotWatch
from twopc.spark.task import RESULT_SCHEMA, host_function

log = logging.getLogger(__name__)

CANCEL_SECONDS = 10.0

ENDED_BY_ITSELF = "was it killed, or does a function end it, e.g. by os._exit?"


class SparkStage:
    """One barrier stage, running on a thread that waits for its result."""

    def __init__(
        self, session: SparkSession, slots: SlotWatch, job: JobText | PickledJob, specs: Sequence[SubtaskSpec]
    ) -> None:
        self._session = session
        self._slots = slots
        self._group = f"twopc-{specs[0].job}-{specs[0].attempt}"
        self._error: str | None = None
        self._ended = threading.Event()
        self._count = count = len(specs)
        host = host_function(job, [to_json(spec) for spec in specs])
        self._frame = session.range(0, count, 1, count).mapInArrow(host, RESULT_SCHEMA, barrier=True)
        self._thread = threading.Thread(target=self._run, name=self._group, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._session.sparkContext.setJobGroup(self._group, "twopc", interruptOnCancel=True)
            self._frame.collect()
        except Exception as error:
            self._end(reason_of(error))
            log.debug("the Spark stage ended with an error", exc_info=True)
        finally:
            self._ended.set()

    def _end(self, error: str) -> None:
        if not self._ended.is_set():
            self._error = error
            self._ended.set()

    def wait(self, timeout: float) -> bool:
        return self._ended.wait(timeout)

    def drain(self, timeout: float) -> None:
        self._ended.wait(timeout)

    def error(self) -> TwoPhaseCommitError | None:
        if self._error is None:
            return None
        asked = f": {ENDED_BY_ITSELF}" if "Python worker exited" in self._error else ""
        return Unavailable(self._error + asked)

    def has_said_why(self) -> bool:
        return False  # Spark says that Python failed, whatever it was that it met.

    def shortage(self) -> str | None:
        try:
            said = self._slots.shortage(self._group, self._count, time.monotonic())
        except (Py4JError, PySparkException, OSError) as error:
            log.debug("Spark does not say what a stage waits for: %s", error)
            return None
        if self._slots.lost:
            self._cancel()
            self._end("Spark's master no longer knows the application: it has no executors, and gets none")
        return said

    def kill(self) -> None:
        if self._ended.is_set():
            return
        self._cancel()
        if not self._ended.wait(CANCEL_SECONDS):
            log.warning("the Spark stage did not end within %.0f s of being cancelled", CANCEL_SECONDS)

    def _cancel(self) -> None:
        try:
            self._session.sparkContext.cancelJobGroup(self._group)
        except (Py4JError, OSError) as error:
            log.debug("a stage of a JVM that is gone can't be cancelled: %s", error)


class SparkHost:
    """Submits to one session, which starts with the first stage: what is wrong before then costs no start of a JVM."""

    def __init__(self, master: str, stop: Callable[[], bool] = lambda: False) -> None:
        self._holder = SessionHolder(master, stop)
        self._stage: SparkStage | None = None
        self._session: SparkSession | None = None
        self._slots: SlotWatch | None = None
        self._job: JobText | PickledJob | None = None

    def notice(self) -> str | None:
        return None if self._holder.started else f"starting Spark (master {self._holder.master})"

    def submit(self, definition: JobDefinition, specs: Sequence[SubtaskSpec]) -> SparkStage:
        if self._job is None:
            # Once: a file that is changed meanwhile counts from the next run on, for all subtasks.
            self._job = JobText.of(definition) or PickledJob.of(definition)
        if self._slots is not None and self._slots.lost:
            self._holder.lose()
        session = self._holder.get()
        if self._slots is None or session is not self._session:
            self._session, self._slots = session, SlotWatch(session)
        master, slots = str(session.sparkContext.master), session.sparkContext.defaultParallelism
        if is_local(master) and len(specs) > slots:
            raise ConfigurationError(
                f"parallelism {len(specs)} needs as many task slots, but master {master!r} has {slots}: "
                f"use --master 'local[{len(specs)}]' or a smaller --parallelism"
            )
        self._stage = SparkStage(session, self._slots, self._job, specs)
        return self._stage

    def close(self) -> None:
        if self._stage is not None:
            self._stage.kill()
        self._holder.close()
