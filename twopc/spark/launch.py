"""Submits the subtasks as a barrier stage, and tells how the stage ended.

Spark doesn't retry a failed barrier result stage, and would not know how to recover: the driver submits a new stage.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from twopc.errors import ConfigurationError
from twopc.job import JobDefinition
from twopc.runtime.spec import SubtaskSpec
from twopc.spark.session import SessionHolder, reason_of
from twopc.spark.task import RESULT_SCHEMA, host_function

log = logging.getLogger(__name__)

CANCEL_SECONDS = 10.0


class SparkStage:
    """One barrier stage, running on a thread that waits for its result."""

    def __init__(self, session: SparkSession, definition: JobDefinition, specs: Sequence[SubtaskSpec]) -> None:
        self._session = session
        self._group = f"twopc-{specs[0].job}-{specs[0].attempt}"
        self._error: str | None = None
        self._ended = threading.Event()
        count = len(specs)
        host = host_function(definition, [spec.to_json() for spec in specs])
        self._frame = session.range(0, count, 1, count).mapInArrow(host, RESULT_SCHEMA, barrier=True)
        self._thread = threading.Thread(target=self._run, name=self._group, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._session.sparkContext.setJobGroup(self._group, "twopc", interruptOnCancel=True)
            self._frame.collect()
        except Exception as error:
            self._error = reason_of(error)
            log.debug("the Spark stage ended with an error", exc_info=True)
        finally:
            self._ended.set()

    def wait(self, timeout: float) -> bool:
        return self._ended.wait(timeout)

    def error(self) -> str | None:
        return self._error

    def has_said_why(self) -> bool:
        return False  # Spark says that Python failed, whatever it was that it met.

    def kill(self) -> None:
        if self._ended.is_set():
            return
        try:
            self._session.sparkContext.cancelJobGroup(self._group)
        except (Py4JError, OSError) as error:
            log.debug("a stage of a JVM that is gone can't be cancelled: %s", error)
        if not self._ended.wait(CANCEL_SECONDS):
            log.warning("the Spark stage did not end within %.0f s of being cancelled", CANCEL_SECONDS)


class SparkHost:
    """Submits to one session, which starts with the first stage: what is wrong before then costs no start of a JVM."""

    def __init__(self, master: str) -> None:
        self._holder = SessionHolder(master)
        self._stage: SparkStage | None = None

    def submit(self, definition: JobDefinition, specs: Sequence[SubtaskSpec]) -> SparkStage:
        session = self._holder.get()
        master, slots = self._holder.master, session.sparkContext.defaultParallelism
        if master.startswith("local") and len(specs) > slots:
            raise ConfigurationError(
                f"parallelism {len(specs)} needs as many task slots, but master {master!r} has {slots}: "
                f"use --master 'local[{len(specs)}]' or a smaller --parallelism"
            )
        self._stage = SparkStage(session, definition, specs)
        return self._stage

    def close(self) -> None:
        if self._stage is not None:
            self._stage.kill()
        self._holder.close()
