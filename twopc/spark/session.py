"""The Spark session of a run: started when first asked for, and again when its JVM or its application is gone.

A session that this process had before is used, and left running.
"""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from importlib.resources import as_file, files

from py4j.protocol import Py4JError
from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from twopc.driver.host import StoppedEarly
from twopc.errors import ConfigurationError, TwoPhaseCommitError, Unavailable
from twopc.java import find_java
from twopc.spark.jvm import JvmStart
from twopc.spark.master import SUBMITTED, is_local, master_of
from twopc.spark.reason import reason_of

log = logging.getLogger(__name__)

TICK_SECONDS = 0.1
JVM_END_SECONDS = 5.0
ABANDON_SECONDS = 5.0

ALWAYS = {
    "spark.task.reaper.enabled": "true",
    "spark.task.reaper.killTimeout": "20s",
    "spark.python.task.killTimeout": "200ms",
    "spark.task.maxFailures": "1",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.dynamicAllocation.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}
"""What a job needs. Barrier stages can't have dynamic allocation."""

UNLESS_SET = {
    "spark.ui.enabled": "false",
    "spark.scheduler.barrier.maxConcurrentTasksCheck.interval": "1s",
    "spark.scheduler.barrier.maxConcurrentTasksCheck.maxFailures": "300",
}
"""What the user's own configuration may have otherwise. Spark looks for slots every 15 s unless told otherwise."""

LOCAL_UNLESS_SET = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}


class SessionHolder:
    """Gives a session that works; gives up starting one as soon as `stop` says so."""

    def __init__(self, setting: str, stop: Callable[[], bool] = lambda: False) -> None:
        # Not getActiveSession: it knows the session of the calling thread only.
        self._ours = SparkContext._active_spark_context is None
        self.master = master_of(setting)
        if setting and setting != self.master:
            log.warning("master %r is not used: this process has a Spark session, under %r", setting, self.master)
        self._stop = stop
        self._session: SparkSession | None = None
        self._lost = False
        self._ever = False

    @property
    def started(self) -> bool:
        """Whether there is a session, as far as is known."""
        return self._session is not None or not self._ours

    def lose(self) -> None:
        """Start another session the next time: the cluster no longer knows the application of this one."""
        self._lost = self._ours

    def get(self) -> SparkSession:
        """Return the session; start it, or start another one where it is gone."""
        if self._session is not None and self._ours:
            self._give_up_what_is_gone(self._session)
        if self._session is None:
            self._session = self._start() if self._ours else SparkSession.builder.getOrCreate()
        return self._session

    def close(self) -> None:
        """Stop the session if it is ours; one whose JVM is gone needs no stopping."""
        if self._session is None or not self._ours:
            return
        if _alive(self._session):
            self._session.stop()
        else:
            _forget()

    def _give_up_what_is_gone(self, session: SparkSession) -> None:
        if not _alive(session):
            log.warning("Spark's JVM is gone: starting another one")
            _forget()
        elif self._lost:
            log.warning("Spark's master has lost the application: starting another session")
            session.stop()
        else:
            return
        self._session, self._lost = None, False

    def _start(self) -> SparkSession:
        if not self._ever:
            find_java()
        if not (py4j := logging.getLogger("py4j")).isEnabledFor(logging.DEBUG):
            # It logs with a traceback, and then raises, whatever a JVM that is gone does not answer.
            py4j.setLevel(logging.CRITICAL)
        start = _Start(self.master)
        while not start.ended.wait(TICK_SECONDS):
            if self._stop():
                start.abandon()
                raise StoppedEarly
        if start.error is not None:
            raise self._refused(start.error) from start.error
        assert start.session is not None
        self._ever = True
        return start.session

    def _refused(self, error: Exception) -> TwoPhaseCommitError:
        if self._ever:
            return Unavailable(f"Spark can't start again with master {self.master!r}. {reason_of(error)}")
        refused = ConfigurationError(
            f"Spark can't start with master {self.master!r}. {reason_of(error)}. Is it the right --master, and is "
            "there memory for it?"
        )
        # A cluster may be away for a moment: what had run before is tried again.
        refused.restartable = True
        return refused


class _Start:
    """The start of a session, on a thread of its own: it takes long, and who waits may change their mind."""

    def __init__(self, master: str) -> None:
        self._master = master
        self._abandoned = threading.Event()
        self._jvm = JvmStart(self._abandoned.is_set)
        self.session: SparkSession | None = None
        self.error: Exception | None = None
        self.ended = threading.Event()
        threading.Thread(target=self._run, name="twopc-spark-start", daemon=True).start()

    def abandon(self) -> None:
        """Let go of it: a JVM of our own ends now, and a session that still comes is stopped."""
        self._abandoned.set()
        deadline = time.monotonic() + ABANDON_SECONDS
        while not self.ended.wait(TICK_SECONDS) and time.monotonic() < deadline:
            self._jvm.kill()
        _forget()

    def _run(self) -> None:
        try:
            session = _session(self._master, self._jvm)
            if self._abandoned.is_set():
                session.stop()
            else:
                self.session = session
        except (Py4JError, PySparkException, RuntimeError, OSError) as error:
            self.error = error
        finally:
            self.ended.set()


def _alive(session: SparkSession) -> bool:
    try:
        return session.sparkContext.defaultParallelism > 0
    except (Py4JError, PySparkException, OSError):
        return False


def _forget() -> None:
    """Make PySpark forget the gateway to a JVM that is gone or no use, and end that JVM if it is ours."""
    gateway = SparkContext._gateway
    if gateway is not None:
        with suppress(Py4JError, OSError):
            gateway.shutdown()
        _end(getattr(gateway, "proc", None))
    SparkContext._gateway = None
    SparkContext._jvm = None
    SparkContext._active_spark_context = None
    SparkSession._instantiatedSession = None
    SparkSession._activeSession = None


def _end(jvm: subprocess.Popen[bytes] | None) -> None:
    if jvm is None:
        return
    jvm.kill()
    with suppress(subprocess.TimeoutExpired):
        jvm.wait(JVM_END_SECONDS)


def _session(master: str, jvm: JvmStart) -> SparkSession:
    """Make a session whose workers run this environment's Python, with no UI and nothing on Spark's log.

    Workers on other machines have another Python where PYSPARK_PYTHON says so.
    """
    if is_local(master):
        os.environ["PYSPARK_PYTHON"] = sys.executable
    else:
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    with as_file(files("twopc.spark") / "log4j2.properties") as log_config:
        jvm.run({"spark.master": master, "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={log_config}"})
        known = SparkConf()
        wanted = UNLESS_SET | (LOCAL_UNLESS_SET if is_local(master) else {})
        settings = ALWAYS | {name: value for name, value in wanted.items() if not known.contains(name)}
        builder = SparkSession.builder.master(master)
        if SUBMITTED not in os.environ:
            builder = builder.appName("twopc")
        for name, value in settings.items():
            builder = builder.config(name, value)
        return builder.getOrCreate()
