"""The Spark session of a run: started when first asked for, and again when its JVM has died.

A session that this process had before is used, and left running.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.resources import as_file, files

from py4j.protocol import Py4JError
from pyspark import SparkContext, cloudpickle
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from twopc.errors import ConfigurationError
from twopc.java import find_java
from twopc.loading import by_value_modules
from twopc.spark.jvm import start_jvm

log = logging.getLogger(__name__)


class SessionHolder:
    """Gives a session that works."""

    def __init__(self, master: str) -> None:
        self.master = master
        # Not getActiveSession: it knows the session of the calling thread only.
        self._ours = SparkContext._active_spark_context is None
        self._session: SparkSession | None = None

    def get(self) -> SparkSession:
        """Return the session; start it, or start another one where its JVM is gone."""
        if self._session is not None and self._ours and not _alive(self._session):
            log.warning("Spark's JVM is gone: starting another one")
            _forget()
            self._session = None
        if self._session is None:
            self._session = _session(self.master)
        return self._session

    def close(self) -> None:
        """Stop the session if it is ours; one whose JVM is gone needs no stopping."""
        if self._session is None or not self._ours:
            return
        if _alive(self._session):
            self._session.stop()
        else:
            _forget()


def _alive(session: SparkSession) -> bool:
    try:
        return session.sparkContext.defaultParallelism > 0
    except (Py4JError, PySparkException, OSError):
        return False


def _forget() -> None:
    """Make PySpark forget the gateway to a dead JVM, which it would otherwise use for ever."""
    gateway = SparkContext._gateway
    if gateway is not None:
        with suppress(Py4JError, OSError):
            gateway.shutdown()
    SparkContext._gateway = None
    SparkContext._jvm = None
    SparkContext._active_spark_context = None
    SparkSession._instantiatedSession = None
    SparkSession._activeSession = None


def _session(master: str) -> SparkSession:
    """Make a session whose workers run this environment's Python, with no UI and nothing on Spark's log."""
    find_java()
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
            if SparkContext._active_spark_context is None:
                start_jvm(settings | {"spark.master": master})
            with _own_interrupt():
                return builder.getOrCreate()
        except (Py4JError, PySparkException, RuntimeError, OSError) as error:
            raise ConfigurationError(
                f"Spark can't start with master {master!r}. {reason_of(error)}. Is it the right --master, and is there "
                "memory for it?"
            ) from error


@contextmanager
def _own_interrupt() -> Iterator[None]:
    """Keep what Ctrl-C does: a new SparkContext has it cancel all stages, the one with our subtasks too."""
    before = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, before)


def reason_of(error: BaseException) -> str:
    """Return the line of Spark's account that says what happened to the stage."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    telling = [line for line in lines if "Python worker exited" in line] or [
        line for line in lines if "Exception: " in line
    ]
    said = (telling or lines or [type(error).__name__])[0].rpartition("Exception: ")[2]
    return f"Spark says: {said.partition('. ')[0]}"
