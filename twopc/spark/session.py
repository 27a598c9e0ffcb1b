"""The Spark session of a run: started when first asked for, and again when its JVM or its application is gone.

A session that this process had before, or that spark-submit started, is used; where it is gone, so is the run.
"""

from __future__ import annotations

import logging
import os
import sys
import threading
import time
from collections.abc import Callable
from importlib.resources import as_file, files

from py4j.protocol import Py4JError, Py4JNetworkError
from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from twopc.driver.host import StoppedEarly
from twopc.errors import ConfigurationError, TwoPhaseCommitError, Unavailable
from twopc.java import find_java
from twopc.spark.bounded_question import NoAnswer, Question
from twopc.spark.configuration import DYNAMIC_ALLOCATION, SparkConfiguration
from twopc.spark.failure_reason import reason_of
from twopc.spark.jvm import TRIES, JvmStart, end_own_jvm, own_jvm_was_killed
from twopc.spark.master import SUBMITTED, await_reachable, is_local, master_of
from twopc.spark.quick_start import QuickStart

log = logging.getLogger(__name__)

TICK_SECONDS = 0.1
ABANDON_SECONDS = 5.0
ANSWER_SECONDS = 10.0
"""How long a JVM may take to answer; one that works takes milliseconds."""

_STOPPED = "stopped SparkContext"


class SessionHolder:
    """Gives a session that works; gives up starting one as soon as `stop` says so."""

    def __init__(
        self, setting: str, configuration: SparkConfiguration, stop: Callable[[], bool] = lambda: False
    ) -> None:
        # Not getActiveSession: it knows the session of the calling thread only.
        self._ours = SparkContext._active_spark_context is None
        self._can_start_another = self._ours and SUBMITTED not in os.environ
        self._configuration = configuration
        if configuration.given:
            _refuse_unless_we_start_it(configuration.given)
        self.master = master_of(setting)
        if setting and setting != self.master:
            log.warning("master %r is not used: this process has a Spark session, under %r", setting, self.master)
        self._stop = stop
        self._session: SparkSession | None = None
        self._lost = False
        self._ever = False
        self._quick = QuickStart(self.master)
        self._coming: _Start | None = None

    @property
    def started(self) -> bool:
        """Whether there is a session, as far as is known."""
        return self._session is not None or not self._ours

    def lose(self) -> None:
        """Start another session the next time: the cluster no longer knows the application of this one."""
        self._lost = self._ours

    def begin(self) -> None:
        """Begin to start a session of ours; `get` waits for it, and says what is wrong with it.

        On a cluster nothing is begun: a job that is refused meanwhile would be an application that failed there.
        """
        if self._ours and is_local(self.master) and self._session is None and self._coming is None:
            self._coming = self._begun()

    def get(self) -> SparkSession:
        """Return the session; start it, or start another one where it is gone.

        Raises Unavailable, which no restart cures, where it is gone and somebody else has started it, and NoAnswer
        where it is somebody else's and stands still. One of ours that stands still is ended, and another one started.
        """
        if self._session is not None:
            self._give_up_what_is_gone(self._session)
        if self._session is None:
            self._session = self._start() if self._ours else Question(_existing_session).answer(ANSWER_SECONDS)
        return self._session

    def end_jvm(self) -> bool:
        """End the JVM, with whatever it has under way; return False where it is not ours to end."""
        if not self._can_start_another:
            return False
        end_own_jvm()
        return True

    def close(self) -> None:
        """Stop the session if it is ours, or let go of its start; one whose JVM is gone needs no stopping."""
        if self._coming is not None:
            self._coming.abandon()
            self._coming = None
        if self._session is None or not self._ours:
            return
        try:
            gone = self._reason_gone(self._session)
        except NoAnswer as silence:
            log.warning("%s: its session is left as it is", silence)
            return
        if gone is None:
            self._stop_session(self._session)
        else:
            _forget()

    def _reason_gone(self, session: SparkSession) -> str | None:
        try:
            return Question(lambda: _reason_gone(session)).answer(ANSWER_SECONDS)
        except NoAnswer as silence:
            if not self._can_start_another:
                raise
            return str(silence)

    def _stop_session(self, session: SparkSession) -> None:
        stopping = Question(session.stop)
        try:
            stopping.answer(ANSWER_SECONDS)
        except NoAnswer as silence:
            log.warning("%s: its session is given up", silence)
            self.end_jvm()
            # PySpark forgets the session last: it must not be the next one.
            stopping.ended(ABANDON_SECONDS)
            _forget()

    def _give_up_what_is_gone(self, session: SparkSession) -> None:
        if (gone := self._reason_gone(session)) is not None:
            if not self._can_start_another:
                raise _final(gone)
            log.warning("%s: starting another one", gone)
            _forget()
        elif self._lost:
            log.warning("Spark's master has lost the application: starting another session")
            self._stop_session(session)
        else:
            return
        self._session, self._lost = None, False

    def _start(self) -> SparkSession:
        for tries_left in reversed(range(TRIES)):
            start, self._coming = self._coming or self._begun(), None
            while not start.ended.wait(TICK_SECONDS):
                if self._stop():
                    start.abandon()
                    raise StoppedEarly
            if start.session is not None:
                self._ever = True
                return start.session
            # That is nothing which the master, or the memory that it has, is to blame for.
            was_killed = own_jvm_was_killed()
            if self._can_start_another:
                # Its JVM may be gone, or have half a session: the next start has one of its own.
                _forget()
            assert start.error is not None
            if isinstance(start.error, ConfigurationError):
                raise start.error
            if not (was_killed and tries_left and self._can_start_another):
                raise self._refused(start.error) from start.error
            log.warning("Spark's JVM was killed while its session started: starting another one")
        raise AssertionError("the last try returns or raises")

    def _begun(self) -> _Start:
        if not (py4j := logging.getLogger("py4j")).isEnabledFor(logging.DEBUG):
            # It logs with a traceback, and then raises, whatever a JVM that is gone does not answer.
            py4j.setLevel(logging.CRITICAL)
        return _Start(self.master, self._configuration, self._quick, is_first=not self._ever)

    def _refused(self, error: Exception) -> TwoPhaseCommitError:
        why, advice = _reason_and_advice(error)
        if self._ever:
            return Unavailable(f"Spark can't start again with master {self.master!r}. {why}")
        refused = ConfigurationError(f"Spark can't start with master {self.master!r}. {why}. {advice}")
        # A cluster may be away for a moment: what had run before is tried again.
        refused.restartable = True
        return refused


class _Start:
    """The start of a session, on a thread of its own: it takes long, and who waits may change their mind."""

    def __init__(self, master: str, configuration: SparkConfiguration, quick: QuickStart, *, is_first: bool) -> None:
        self._master, self._is_first = master, is_first
        self._configuration = configuration
        self._abandoned = threading.Event()
        self._jvm = JvmStart(quick, self._abandoned.is_set)
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
            if self._is_first:
                # Later on one that fails may do so for a moment.
                find_java()
            await_reachable(self._master)
            session = _session(self._master, self._configuration, self._jvm)
            if self._abandoned.is_set():
                session.stop()
            else:
                self.session = session
        except Exception as error:  # noqa: BLE001 - a JVM that dies meanwhile makes PySpark raise whatever it comes to
            self.error = error
        finally:
            self.ended.set()


def _refuse_unless_we_start_it(given: str) -> None:
    if SUBMITTED in os.environ:
        raise ConfigurationError(
            f"Spark runs already, by spark-submit, and can't be given {given} now: give it to that"
        )
    if SparkContext._active_spark_context is not None:
        raise ConfigurationError(
            f"this process has a Spark session already, which can't be given {given} now: give it to its builder"
        )


def _reason_and_advice(error: Exception) -> tuple[str, str]:
    if isinstance(error, Unavailable):
        return str(error), "Is it started, and is that its address (--master)?"
    if _STOPPED in str(error):
        # Spark says why in its log alone: nobody has registered the application in a minute, or the master ended it.
        return "It accepts connections, and has not taken the application", "Is it the port of a master, and well?"
    return reason_of(error), "Is it the right --master, and is there memory for it?"


def _existing_session() -> SparkSession:
    """Return the session that this process has; it has what a job can't do without."""
    try:
        session = SparkSession.builder.getOrCreate()
        dynamic = session.sparkContext.getConf().get(DYNAMIC_ALLOCATION)
    except (Py4JError, PySparkException, OSError) as error:
        raise _final("Spark's JVM is gone") from error
    if dynamic == "true" and not is_local(str(session.sparkContext.master)):
        raise ConfigurationError(
            f"the Spark session of this process has {DYNAMIC_ALLOCATION}=true, and Spark then runs no stage that needs "
            f"its task slots all at once: give {DYNAMIC_ALLOCATION}=false to its builder"
        )
    return session


def _reason_gone(session: SparkSession) -> str | None:
    """Say what of a session is gone, for a person; None where it works."""
    if session.sparkContext._jsc is None:
        return "the Spark session was stopped"
    try:
        session.sparkContext.defaultParallelism  # noqa: B018 - asked of the JVM
    except (Py4JNetworkError, OSError):
        return "Spark's JVM is gone"
    except (Py4JError, PySparkException):
        return "Spark's application has ended, and not by this run"
    return None


def _final(gone: str) -> Unavailable:
    error = Unavailable(
        f"{gone}, and this run can't start another one in its place, because it did not start the first. Nothing is "
        "lost: run the program again"
    )
    error.restartable = False
    return error


def _forget() -> None:
    """Make PySpark forget the gateway to a JVM that is gone or no use, and end that JVM if it is ours."""
    end_own_jvm()
    if (gateway := SparkContext._gateway) is not None:
        Question(gateway.shutdown).ended(ABANDON_SECONDS)
    SparkContext._gateway = None
    SparkContext._jvm = None
    SparkContext._active_spark_context = None
    SparkSession._instantiatedSession = None
    SparkSession._activeSession = None


def _session(master: str, configuration: SparkConfiguration, jvm: JvmStart) -> SparkSession:
    """Make a session with nothing on Spark's log, whose workers run this environment's Python.

    They run another where PYSPARK_PYTHON says so, or spark.pyspark.python.
    """
    with as_file(files("twopc.spark") / "log4j2.properties") as log_config:
        jvm.run(configuration.at_launch(master), [f'"-Dlog4j2.configurationFile={log_config}"'])
        known = SparkConf()
        os.environ.setdefault("PYSPARK_PYTHON", known.get("spark.pyspark.python") or sys.executable)
        os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
        if known.get(DYNAMIC_ALLOCATION) == "true":
            log.info("dynamic allocation of executors is off for this run: a job needs its task slots all at once")
        builder = SparkSession.builder.master(master)
        for name, value in configuration.of_session(master, known.contains).items():
            builder = builder.config(name, value)
        return builder.getOrCreate()
