"""Starts Spark's JVM with its standard error in our hands: what it says reaches the user, but for what it always says.

The standard error of the JVM is also that of its Python workers, so a user's `print(..., file=sys.stderr)` comes this
way, and a live view on the terminal is not written over.
"""

from __future__ import annotations

import logging
import os
import re
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress

import psutil
from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkRuntimeError
from pyspark.java_gateway import launch_gateway

from twopc.logs import pass_on
from twopc.spark.own_jvm import END_SECONDS, OwnJvm
from twopc.spark.quick_start import QuickStart
from twopc.user_folders import home_of_a_nameless_user

log = logging.getLogger(__name__)

ALWAYS_SAID = ("WARNING: Using incubator modules: jdk.incubator.vector",)
"""Notices of the JVM about how Spark's own launcher starts it; no option turns them off."""

LAUNCHER = "spark"
"""The mark in the command of every process that PySpark starts on the way to a JVM."""

OPTIONS = "SPARK_SUBMIT_OPTS"
"""The variable in which Spark's launcher takes options of the JVM besides those of the configuration."""

TRIES = 3

_REASON = re.compile(
    r"(?:Exception in thread \S+ )?(?P<reason>(?:\S+(?:Exception|Error): |Error|Invalid|Unrecognized).*)"
)
"""The line in which a JVM that does not start says why; the first one that it says."""

_LAST_WORDS_SECONDS = 5.0

USER_VARIABLES = ("SPARK_USER", "HADOOP_USER_NAME")


def options_of_surroundings() -> list[str]:
    """Return the JVM's options for what Java and Spark don't find out themselves, and fail without.

    A user whose number has no entry on this machine has no home, and no name: that is set as variables.
    """
    if (home := home_of_a_nameless_user()) is not None:
        for variable in USER_VARIABLES:
            os.environ.setdefault(variable, f"user-{os.getuid()}")
        return [f'"-Duser.home={home}"']
    return []


class JvmStart:
    """The start of the JVM that the next SparkContext of this process uses; nothing is started where there is one."""

    def __init__(self, quick: QuickStart, abandoned: Callable[[], bool] = lambda: False) -> None:
        self._quick, self._abandoned = quick, abandoned
        self._before = _children()

    def run(self, settings: Mapping[str, str], options: Sequence[str]) -> None:
        """Start it; a JVM that ends before it could be reached, as on a busy machine, is started again.

        `options` of the JVM go before those that the user's configuration has for it.
        """
        if SparkContext._gateway is not None:
            return
        conf = SparkConf(loadDefaults=False)
        for name, value in settings.items():
            conf.set(name, value)
        for number in range(1, TRIES + 1):
            own = OwnJvm(self._quick)
            try:
                with _options_in_front(" ".join([*options, *options_of_surroundings(), *own.options()])):
                    process = _launch(conf)
                own.started(process)
                _own.append(own)
                break
            except RuntimeError as error:
                own.kill()
                if number == TRIES or self._abandoned():
                    raise
                log.warning("Spark's JVM did not start, trying again: %s", error)

    def kill(self) -> bool:
        """Kill what has been started of it; return whether there was anything."""
        started = [process for process in _children() - self._before if _has_word(process, LAUNCHER)]
        for process in started:
            with suppress(psutil.Error):
                process.kill()
        return bool(started)


def end_own_jvm() -> None:
    """Kill the JVM that this process has started, if there is one, whoever in it did."""
    while _own:
        _own.pop().kill()
    if (process := getattr(SparkContext._gateway, "proc", None)) is not None:
        process.kill()
        with suppress(subprocess.TimeoutExpired):
            process.wait(END_SECONDS)


def own_jvm_was_killed() -> bool:
    """Say whether the JVM that this process has started has ended by a signal, which somebody else sent it."""
    return bool(_own) and _own[-1].was_killed()


_own: list[OwnJvm] = []
"""The JVM that PySpark's gateway leads to, where it is ours: there is one gateway in a process."""


def _children() -> set[psutil.Process]:
    return set(psutil.Process().children())


def _has_word(process: psutil.Process, word: str) -> bool:
    try:
        return process.status() != psutil.STATUS_ZOMBIE and any(word in part for part in process.cmdline())
    except psutil.Error:
        return False


@contextmanager
def _options_in_front(options: str) -> Iterator[None]:
    before = os.environ.get(OPTIONS)
    os.environ[OPTIONS] = options if before is None else f"{options} {before}"
    try:
        yield
    finally:
        if before is None:
            del os.environ[OPTIONS]
        else:
            os.environ[OPTIONS] = before


def _launch(conf: SparkConf) -> subprocess.Popen[bytes]:
    """Start the JVM, and return its process; raise RuntimeError with its own reason where it has said one."""
    reading, writing = os.pipe()
    reasons: list[str] = []

    def hear(line: str) -> None:
        if (found := _REASON.match(line)) and not reasons:
            reasons.append(found["reason"])

    # It reads from the start on: a JVM that fails says why.
    listener = pass_on(os.fdopen(reading, "r", errors="replace"), without=ALWAYS_SAID, hear=hear)
    failure = None
    try:
        # Standard output belongs to the answer of the command.
        streams = {"stdout": writing, "stderr": writing}
        gateway = launch_gateway(conf, popen_kwargs=streams)  # type: ignore[no-untyped-call]
    except PySparkRuntimeError as error:
        failure = error
    finally:
        os.close(writing)
    if failure is not None:
        listener.join(_LAST_WORDS_SECONDS)
        raise (RuntimeError(f"Java has not started: {reasons[0]}") if reasons else failure) from failure.__cause__
    SparkContext._gateway = gateway
    SparkContext._jvm = gateway.jvm
    process: subprocess.Popen[bytes] = gateway.proc
    return process
