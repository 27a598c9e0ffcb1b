"""What starting a session leaves as it was."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import pytest
from py4j.protocol import Py4JNetworkError
from pyspark import SparkContext
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from twopc.errors import ConfigurationError, Unavailable
from twopc.spark import jvm, session
from twopc.spark.configuration import SparkConfiguration
from twopc.spark.session import SessionHolder


def as_pyspark_starts(_builder: Any) -> Any:
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    return object()


def without_a_jvm(monkeypatch: pytest.MonkeyPatch, known: Mapping[str, str]) -> None:
    """Have sessions that start at once, on a machine where this is configured."""
    monkeypatch.setattr(jvm.JvmStart, "run", lambda *_: None)
    monkeypatch.setattr(session, "SparkConf", lambda: SimpleNamespace(contains=known.__contains__, get=known.get))
    monkeypatch.setattr(session, "find_java", lambda: None)
    monkeypatch.setattr(session, "await_reachable", lambda _: None)
    monkeypatch.setattr(SparkContext, "_active_spark_context", None)
    monkeypatch.setattr(SparkSession.Builder, "getOrCreate", as_pyspark_starts)


def test_dynamic_allocation_that_an_administrator_wants_is_off_with_one_line(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "twopc.spark.session")
    without_a_jvm(monkeypatch, {"spark.dynamicAllocation.enabled": "true"})
    SessionHolder("spark://10.0.0.5:7077", SparkConfiguration("job")).get()
    assert [record.message for record in caplog.records] == [
        "dynamic allocation of executors is off for this run: a job needs its task slots all at once"
    ]


def test_ctrl_c_does_after_the_start_of_a_session_what_it_did_before(monkeypatch: pytest.MonkeyPatch) -> None:
    """PySpark has it cancel all stages, so that a job could take no last checkpoint."""
    without_a_jvm(monkeypatch, {})
    before = signal.getsignal(signal.SIGINT)
    SessionHolder("local[1]", SparkConfiguration("job")).get()
    assert signal.getsignal(signal.SIGINT) is before


class Starts:
    """Counts the JVMs that were started, and those that were let go of."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, error: Exception | None = None) -> None:
        self.count, self.forgotten, self._error = 0, 0, error
        monkeypatch.setattr(jvm.JvmStart, "run", self._run)
        monkeypatch.setattr(session, "_forget", self._forget)

    def _run(self, *_: object) -> None:
        self.count += 1
        if self._error is not None:
            raise self._error

    def _forget(self) -> None:
        self.forgotten += 1


def test_a_session_that_was_begun_is_the_one_that_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    without_a_jvm(monkeypatch, {})
    starts, holder = Starts(monkeypatch), SessionHolder("local[1]", SparkConfiguration("job"))
    holder.begin()
    holder.begin()
    assert holder.get()
    assert (starts.count, starts.forgotten) == (1, 0)


def test_a_session_that_was_begun_and_that_nobody_gets_is_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    without_a_jvm(monkeypatch, {})
    starts, holder = Starts(monkeypatch), SessionHolder("local[1]", SparkConfiguration("job"))
    holder.begin()
    holder.close()
    assert (starts.count, starts.forgotten) == (1, 1)


def test_what_is_wrong_with_a_start_is_said_when_the_session_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    without_a_jvm(monkeypatch, {})
    Starts(monkeypatch, RuntimeError("Java has not started: Invalid maximum heap size"))
    holder = SessionHolder("local[1]", SparkConfiguration("job"))
    holder.begin()
    with pytest.raises(ConfigurationError, match=r"Spark can't start .* Invalid maximum heap size"):
        holder.get()


@pytest.mark.parametrize("error", [ConnectionRefusedError("gone"), TypeError("'JavaPackage' object is not callable")])
def test_a_start_that_fails_in_its_middle_leaves_no_jvm_to_the_next(
    monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    without_a_jvm(monkeypatch, {})
    starts, holder = Starts(monkeypatch), SessionHolder("local[1]", SparkConfiguration("job"))

    def fails(_builder: Any) -> Any:
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(SparkSession.Builder, "getOrCreate", fails)
        with pytest.raises(ConfigurationError, match="can't start"):
            holder.get()
    assert starts.forgotten == 1
    holder.get()
    assert (starts.count, starts.forgotten) == (2, 1)


@pytest.mark.parametrize(("was_killed", "starts_in_all"), [(True, jvm.TRIES), (False, 1)])
def test_a_jvm_that_somebody_kills_while_its_session_starts_is_followed_by_others_up_to_a_limit(
    monkeypatch: pytest.MonkeyPatch, was_killed: bool, starts_in_all: int
) -> None:
    without_a_jvm(monkeypatch, {})
    starts = Starts(monkeypatch, ConnectionRefusedError("gone"))
    monkeypatch.setattr(session, "own_jvm_was_killed", lambda: was_killed)
    with pytest.raises(ConfigurationError, match="can't start"):
        SessionHolder("local[1]", SparkConfiguration("job")).get()
    assert (starts.count, starts.forgotten) == (starts_in_all, starts_in_all)


def test_a_session_comes_though_the_jvm_of_its_first_start_was_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    without_a_jvm(monkeypatch, {})
    starts, holder = Starts(monkeypatch), SessionHolder("local[1]", SparkConfiguration("job"))
    monkeypatch.setattr(session, "own_jvm_was_killed", lambda: True)
    answers = iter([Py4JNetworkError("gone"), None])

    def once(builder: Any) -> Any:
        if (error := next(answers)) is not None:
            raise error
        return as_pyspark_starts(builder)

    monkeypatch.setattr(SparkSession.Builder, "getOrCreate", once)
    assert holder.get()
    assert (starts.count, starts.forgotten) == (2, 1)


def test_java_is_looked_for_before_the_first_start_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Later on one that does not answer may do so again in a moment, and is tried again."""
    without_a_jvm(monkeypatch, {})
    looks: list[None] = []
    monkeypatch.setattr(session, "find_java", lambda: looks.append(None))
    holder = SessionHolder("local[1]", SparkConfiguration("job"))
    holder.get()
    holder._session = None
    holder.get()
    assert len(looks) == 1


def test_nothing_is_begun_on_a_cluster_before_it_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    without_a_jvm(monkeypatch, {})
    starts, holder = Starts(monkeypatch), SessionHolder("spark://10.0.0.5:7077", SparkConfiguration("job"))
    holder.begin()
    holder.close()
    assert (starts.count, starts.forgotten) == (0, 0)


@pytest.mark.parametrize("master", ["local[1]", "spark://10.0.0.5:7077"])
def test_the_python_that_a_user_names_for_the_workers_is_kept(master: str, monkeypatch: pytest.MonkeyPatch) -> None:
    without_a_jvm(monkeypatch, {"spark.pyspark.python": "/other/python"})
    monkeypatch.setenv("PYSPARK_PYTHON", "/my/python")
    SessionHolder(master, SparkConfiguration("job")).get()
    assert os.environ["PYSPARK_PYTHON"] == "/my/python"


@pytest.mark.parametrize(
    ("configured", "used"), [({}, sys.executable), ({"spark.pyspark.python": "/my/python"}, "/my/python")]
)
def test_workers_run_the_configured_python_or_else_this_one(
    configured: Mapping[str, str], used: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    without_a_jvm(monkeypatch, configured)
    monkeypatch.setenv("PYSPARK_PYTHON", "")
    del os.environ["PYSPARK_PYTHON"]
    SessionHolder("local[1]", SparkConfiguration("job")).get()
    assert os.environ["PYSPARK_PYTHON"] == used


class Context:
    """As much of a SparkContext as a holder asks of one; what its JVM answers with, where it answers."""

    def __init__(self, master: str = "local[2]", conf: Mapping[str, str] | None = None) -> None:
        self.master = master
        self._conf = conf or {}
        self._jsc: object | None = object()
        self.answer: Exception | None = None

    def getConf(self) -> Mapping[str, str]:  # noqa: N802
        return self._conf

    @property
    def defaultParallelism(self) -> int:  # noqa: N802
        if self.answer is not None:
            raise self.answer
        return 2


def holder_of(context: Context, monkeypatch: pytest.MonkeyPatch) -> SessionHolder:
    """Of a program that has this session."""
    monkeypatch.setattr(SparkContext, "_active_spark_context", context)
    monkeypatch.setattr(SparkSession.Builder, "getOrCreate", lambda _builder: SimpleNamespace(sparkContext=context))
    return SessionHolder("", SparkConfiguration("job"))


def test_a_session_of_the_program_is_used_again_while_it_works(monkeypatch: pytest.MonkeyPatch) -> None:
    holder = holder_of(Context(), monkeypatch)
    assert holder.get() is holder.get()


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (Py4JNetworkError("no answer"), "Spark's JVM is gone"),
        (ConnectionRefusedError(), "Spark's JVM is gone"),
        (PySparkException("stopped SparkContext"), "Spark's application has ended"),
    ],
)
def test_a_session_of_the_program_that_is_gone_ends_the_run_for_good(
    answer: Exception, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    context = Context()
    holder = holder_of(context, monkeypatch)
    holder.get()
    context.answer = answer
    with pytest.raises(Unavailable, match=f"{said}.*Nothing is lost: run the program again") as raised:
        holder.get()
    assert not raised.value.restartable


def test_a_session_that_the_program_has_stopped_is_not_replaced_by_one_elsewhere(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    context = Context()
    holder = holder_of(context, monkeypatch)
    holder.get()
    context._jsc = None
    with pytest.raises(Unavailable, match="the Spark session was stopped") as raised:
        holder.get()
    assert not raised.value.restartable


def test_a_jvm_of_the_program_that_is_gone_before_the_run_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    holder = holder_of(Context(), monkeypatch)

    def refuse(_builder: Any) -> Any:
        raise ConnectionRefusedError

    monkeypatch.setattr(SparkSession.Builder, "getOrCreate", refuse)
    with pytest.raises(Unavailable, match="Spark's JVM is gone"):
        holder.get()


def test_a_session_of_the_program_with_dynamic_allocation_is_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    holder = holder_of(Context("spark://10.0.0.5:7077", {"spark.dynamicAllocation.enabled": "true"}), monkeypatch)
    with pytest.raises(ConfigurationError, match=r"give spark\.dynamicAllocation\.enabled=false to its builder"):
        holder.get()


def test_under_a_local_master_dynamic_allocation_is_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    holder_of(Context(conf={"spark.dynamicAllocation.enabled": "true"}), monkeypatch).get()
