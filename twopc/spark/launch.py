"""Submits the subtasks as a barrier stage, and tells how the stage ended, or what it waits for.

Spark doesn't retry a failed barrier result stage, and would not know how to recover: the driver submits a new stage.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from twopc.driver.host import Told
from twopc.errors import ConfigurationError, TwoPhaseCommitError, Unavailable
from twopc.graph import JobDefinition
from twopc.loader.job_loader import JobText
from twopc.protocol.codec import to_json
from twopc.runtime.spec import SubtaskSpec
from twopc.spark.bounded_question import NoAnswer, Question
from twopc.spark.configuration import LAY_FILES, SparkConfiguration
from twopc.spark.failed_task import place_of_failure
from twopc.spark.failure_reason import is_lost_executor, reason_of
from twopc.spark.master import is_local
from twopc.spark.pickled_job import PickledJob
from twopc.spark.session import ANSWER_SECONDS, SessionHolder
from twopc.spark.slots import SlotWatch
from twopc.spark.spare_executors import SpareExecutors
from twopc.spark.task import RESULT_SCHEMA, host_function

log = logging.getLogger(__name__)

CANCEL_SECONDS = 10.0
SHORTAGE_SECONDS = 2.0
"""How long a look for what a stage lacks may hold up the driver, which does nothing else meanwhile."""

ENDED_BY_ITSELF = "was it killed, or does a function end it, e.g. by os._exit?"


class SparkSubtasks:
    """One barrier stage, running on a thread that waits for its result; the JVM may stand still meanwhile."""

    def __init__(
        self,
        session: SparkSession,
        slots: SlotWatch,
        job: JobText | PickledJob,
        specs: Sequence[SubtaskSpec],
        end_jvm: Callable[[], bool],
    ) -> None:
        self._session = session
        self._slots = slots
        self._end_jvm = end_jvm
        self._look: Question[str | None] | None = None
        self._group = f"twopc-{specs[0].job}-{specs[0].attempt}"
        self._error: TwoPhaseCommitError | None = None
        self._executor_lost = False
        self._ended = threading.Event()
        self._count = len(specs)
        self._description = f"{specs[0].job}, attempt {specs[0].attempt}: task i is subtask i of {self._count}"
        self._job, self._specs = job, [_as_it_travels(spec) for spec in specs]
        self._thread = threading.Thread(target=self._run, name=self._group, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._session.sparkContext.setJobGroup(self._group, self._description, interruptOnCancel=True)
            self._frame().collect()
        except ConfigurationError as error:
            self._end(error)
        except Exception as error:
            self._executor_lost = is_lost_executor(error)
            self._end(Unavailable(self._failure_text(error)))
            log.debug("the Spark stage ended with an error", exc_info=True)
        finally:
            self._ended.set()

    def _frame(self) -> DataFrame:
        host = host_function(self._job, self._specs, folder=self._folder())
        try:
            return self._session.range(0, self._count, 1, self._count).mapInArrow(host, RESULT_SCHEMA, barrier=True)
        except (ImportError, TypeError, ValueError) as error:
            raise ConfigurationError(
                f"PySpark can't make a stage of the subtasks: {error}. Has this Python the pyspark and pyarrow that "
                "twopc-streams[spark] brings?"
            ) from error

    def _folder(self) -> Path | None:
        """Return what relative names of files are meant to begin with; None where Spark lays files for them."""
        conf = self._session.sparkContext.getConf()
        return None if any(conf.get(name) for name in LAY_FILES) else self._job.folder

    def _failure_text(self, error: Exception) -> str:
        reason = reason_of(error)
        place = None if "executor" in reason else place_of_failure(self._session.sparkContext, self._group)
        asked = f": {ENDED_BY_ITSELF}" if "Python worker exited" in reason else ""
        return f"{reason}{asked}" if place is None else f"{reason} ({place}){asked}"

    def _end(self, error: TwoPhaseCommitError) -> None:
        if not self._ended.is_set():
            self._error = error
            self._ended.set()

    def wait(self, timeout: float) -> bool:
        return self._ended.wait(timeout)

    def drain(self, timeout: float) -> None:
        self._ended.wait(timeout)

    def error(self) -> TwoPhaseCommitError | None:
        return self._error

    def told_why(self) -> Told:
        # That Python failed is all that Spark says of whatever it met; an executor that is lost took Python with it.
        return Told.NO if self._executor_lost else Told.PERHAPS

    def shortage(self) -> str | None:
        if self._look is None:
            self._look = Question(lambda: self._slots.shortage(self._group, self._count, time.monotonic()))
        try:
            answer = self._look.answer(SHORTAGE_SECONDS)
        except NoAnswer as silence:
            return str(silence)
        except (Py4JError, PySparkException, OSError) as error:
            log.debug("Spark does not say what a stage waits for: %s", error)
            answer = None
        self._look = None
        if self._slots.lost:
            self._cancel()
            self._end(Unavailable("Spark's master no longer knows the application: it has no executors, and gets none"))
        return answer

    def kill(self) -> None:
        if self._ended.is_set():
            return
        self._cancel()
        if not self._ended.wait(CANCEL_SECONDS):
            log.warning("the Spark stage did not end within %.0f s of being cancelled", CANCEL_SECONDS)

    def _cancel(self) -> None:
        try:
            Question(lambda: self._session.sparkContext.cancelJobGroup(self._group)).answer(CANCEL_SECONDS)
        except NoAnswer as silence:
            if self._end_jvm():
                log.warning("%s: it is ended, and the stage with it", silence)
            else:
                log.warning("%s: the stage ends when it goes on, for this run has not started it", silence)
        except (Py4JError, OSError) as error:
            log.debug("a stage of a JVM that is gone can't be cancelled: %s", error)


class SparkHost:
    """Submits to one session, which starts while the driver works out what is to be submitted."""

    def __init__(
        self, master: str, configuration: SparkConfiguration, stop: Callable[[], bool] = lambda: False
    ) -> None:
        self._holder = SessionHolder(master, configuration, stop)
        self._stage: SparkSubtasks | None = None
        self._session: SparkSession | None = None
        self._slots: SlotWatch | None = None
        self._spare: SpareExecutors | None = None
        self._job: JobText | PickledJob | None = None

    def begin(self) -> None:
        """Begin to start the session, which takes long; what is wrong with it, the first `submit` says."""
        self._holder.begin()

    def notice(self) -> str | None:
        return None if self._holder.started else f"starting Spark (master {self._holder.master})"

    def refusal(self, parallelism: int) -> str | None:
        if self._slots is None:
            return None
        try:
            return _refusal(self._slots, parallelism)
        except NoAnswer:
            return None

    def submit(self, definition: JobDefinition, specs: Sequence[SubtaskSpec]) -> SparkSubtasks:
        if self._job is None:
            # Once: a file that is changed meanwhile counts from the next run on, for all subtasks.
            self._job = JobText.of(definition) or PickledJob.of(definition)
        if self._slots is not None and self._slots.lost:
            self._holder.lose()
        session = self._holder.get()
        if self._slots is None or session is not self._session:
            self._session, self._slots = session, SlotWatch(session)
            self._close_spare()
            if not is_local(str(session.sparkContext.master)):
                self._spare = SpareExecutors(session, self._slots)
        if self._spare is None and (refused := _refusal(self._slots, len(specs))):
            raise ConfigurationError(refused)
        self._stage = SparkSubtasks(session, self._slots, self._job, specs, self._holder.end_jvm)
        return self._stage

    def _close_spare(self) -> None:
        if self._spare is not None:
            self._spare.close()
            self._spare = None

    def close(self) -> None:
        self._close_spare()
        if self._stage is not None:
            self._stage.kill()
        self._holder.close()


def _refusal(slots: SlotWatch, parallelism: int) -> str | None:
    return Question(lambda: slots.refusal(parallelism)).answer(ANSWER_SECONDS)


def _as_it_travels(spec: SubtaskSpec) -> dict[str, Any]:
    """Return the spec as JSON, without what only a session needs: it may hold secrets."""
    body: dict[str, Any] = to_json(replace(spec, settings=replace(spec.settings, spark_conf={})))
    return body
