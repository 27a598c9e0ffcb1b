"""Submits the subtasks as a barrier stage, and tells how the stage ended.

Spark doesn't retry a failed barrier result stage, and would not know how to recover: the driver submits a new stage.
"""

from __future__ import annotations

import logging
import os
import sys
import threading
from collections.abc import Sequence
from importlib.resources import as_file, files

from pyspark import cloudpickle
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from twopc.errors import ConfigurationError
from twopc.job import JobDefinition
from twopc.loading import by_value_modules
from twopc.runtime.spec import SubtaskSpec
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
            self._error = _reason(error)
            log.debug("the Spark stage ended with an error", exc_info=True)
        finally:
            self._ended.set()

    def wait(self, timeout: float) -> bool:
        return self._ended.wait(timeout)

    def error(self) -> str | None:
        return self._error

    def kill(self) -> None:
        if self._ended.is_set():
            return
        self._session.sparkContext.cancelJobGroup(self._group)
        if not self._ended.wait(CANCEL_SECONDS):
            log.warning("the Spark stage did not end within %.0f s of being cancelled", CANCEL_SECONDS)


class SparkHost:
    """One Spark session for the whole run, started with the first stage: what is wrong before costs no start of a JVM.

    An existing session of this process is used, and left running.
    """

    def __init__(self, master: str) -> None:
        self._master = master
        self._ours = SparkSession.getActiveSession() is None
        self._session: SparkSession | None = None
        self._stage: SparkStage | None = None

    def submit(self, definition: JobDefinition, specs: Sequence[SubtaskSpec]) -> SparkStage:
        if self._session is None:
            self._session = _session(self._master)
        slots = self._session.sparkContext.defaultParallelism
        if self._master.startswith("local") and len(specs) > slots:
            raise ConfigurationError(
                f"parallelism {len(specs)} needs as many task slots, but master {self._master!r} has {slots}: "
                f"use --master 'local[{len(specs)}]' or a smaller --parallelism"
            )
        self._stage = SparkStage(self._session, definition, specs)
        return self._stage

    def close(self) -> None:
        if self._stage is not None:
            self._stage.kill()
        if self._ours and self._session is not None:
            self._session.stop()


def _session(master: str) -> SparkSession:
    """Make a session whose workers run this environment's Python, with no UI and nothing on Spark's log."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    for module in by_value_modules():
        cloudpickle.register_pickle_by_value(module)  # type: ignore[no-untyped-call]
    builder = SparkSession.builder.appName("twopc").master(master)
    with as_file(files("twopc.spark") / "log4j2.properties") as log_config:
        settings = {
            "spark.ui.enabled": "false",
            "spark.ui.showConsoleProgress": "false",
            "spark.task.reaper.enabled": "true",
            "spark.task.reaper.killTimeout": "20s",
            "spark.python.task.killTimeout": "200ms",
            "spark.task.maxFailures": "1",
            "spark.sql.execution.arrow.pyspark.enabled": "true",
            "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={log_config}",
        }
        if master.startswith("local"):
            settings |= {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
        for name, value in settings.items():
            builder = builder.config(name, value)
        try:
            return builder.getOrCreate()
        except (PySparkException, RuntimeError, OSError) as error:
            raise ConfigurationError(
                f"Spark can't start with master {master!r}: {_reason(error)}. Spark needs Java 17 or newer: "
                "is `java` on the PATH, or JAVA_HOME set?"
            ) from error


def _reason(error: BaseException) -> str:
    """Return the line of Spark's account that says what happened to the stage."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    telling = [line for line in lines if "Python worker exited" in line] or [
        line for line in lines if "Exception: " in line
    ]
    said = (telling or lines or [type(error).__name__])[0].rpartition("Exception: ")[2]
    return f"Spark says: {said.partition('. ')[0]}"
