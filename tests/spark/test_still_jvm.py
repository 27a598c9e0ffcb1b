"""A JVM that takes every question and answers none: the driver says so, and goes on."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any, cast

import pytest
from pyspark import SparkContext
from pyspark.sql import SparkSession

from twopc.errors import ConfigurationError
from twopc.spark import launch, session
from twopc.spark.bounded_question import NoAnswer, Question
from twopc.spark.configuration import SparkConfiguration
from twopc.spark.launch import SparkSubtasks
from twopc.spark.session import SessionHolder

A_MOMENT, LONG = 0.05, 30.0


@pytest.fixture
def stillness() -> Iterator[threading.Event]:
    """Ends when it is set."""
    awake = threading.Event()
    yield awake
    awake.set()


def a_stage(
    spark: object, monkeypatch: pytest.MonkeyPatch, end_jvm: Callable[[], bool] = lambda: False
) -> SparkSubtasks:
    monkeypatch.setattr(launch, "CANCEL_SECONDS", A_MOMENT)
    monkeypatch.setattr(launch, "SHORTAGE_SECONDS", A_MOMENT)
    monkeypatch.setattr(launch, "_as_it_travels", lambda _spec: {})
    slots = SimpleNamespace(shortage=lambda *_: spark.sparkContext.wait(), lost=False)  # type: ignore[attr-defined]
    specs = [SimpleNamespace(job="job", attempt=1)]
    return SparkSubtasks(*cast("Any", (spark, slots, SimpleNamespace(folder=None), specs, end_jvm)))


def refuse(*_: object, **__: object) -> None:
    raise ImportError("PyArrow >= 99 must be installed")


def still(awake: threading.Event) -> SimpleNamespace:
    context = SimpleNamespace(wait=awake.wait, setJobGroup=lambda *_, **__: awake.wait(), getConf=dict)
    context.cancelJobGroup = lambda _group: awake.wait()
    return SimpleNamespace(sparkContext=context, range=refuse)


def test_a_question_that_stays_open_raises_no_answer(stillness: threading.Event) -> None:
    with pytest.raises(NoAnswer, match="does it stand still"):
        Question(stillness.wait).answer(A_MOMENT)


def test_an_answer_and_an_error_come_through() -> None:
    assert Question(lambda: 3).answer(LONG) == 3
    with pytest.raises(ZeroDivisionError):
        Question(lambda: 1 / 0).answer(LONG)


@pytest.mark.parametrize(("is_ours", "said"), [(True, "it is ended"), (False, "this run has not started it")])
def test_a_stage_whose_jvm_stands_still_is_given_up(
    is_ours: bool,
    said: str,
    stillness: threading.Event,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    a_stage(still(stillness), monkeypatch, lambda: is_ours).kill()
    assert any(said in message for message in caplog.messages)


def test_a_stage_whose_jvm_stands_still_says_what_it_waits_for(
    stillness: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "has not answered" in (a_stage(still(stillness), monkeypatch).shortage() or "")


def test_what_pyspark_refuses_to_make_a_stage_of_is_one_clear_error(monkeypatch: pytest.MonkeyPatch) -> None:
    context = SimpleNamespace(setJobGroup=lambda *_, **__: None, getConf=dict)
    spark = SimpleNamespace(sparkContext=context)
    spark.range = lambda *_: SimpleNamespace(mapInArrow=refuse)
    stage = a_stage(spark, monkeypatch)
    assert stage.wait(LONG)
    assert isinstance(error := stage.error(), ConfigurationError)
    assert "PyArrow >= 99" in str(error)


def holder_of(awake: threading.Event, monkeypatch: pytest.MonkeyPatch, *, ours: bool) -> SessionHolder:
    """With a session that works until now."""

    class Context:
        master = "local[2]"
        _jsc = object()

        @property
        def defaultParallelism(self) -> bool:  # noqa: N802
            return awake.wait()

    monkeypatch.setattr(session, "ANSWER_SECONDS", A_MOMENT)
    monkeypatch.setattr(session, "_forget", lambda: None)
    monkeypatch.setattr(SparkContext, "_active_spark_context", None if ours else Context())
    holder = SessionHolder("local[2]", SparkConfiguration("job"))
    holder._session = cast("SparkSession", SimpleNamespace(sparkContext=Context()))
    monkeypatch.setattr(holder, "_start", lambda: "another session")
    return holder


def test_a_session_of_ours_whose_jvm_stands_still_is_replaced(
    stillness: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    session: object = holder_of(stillness, monkeypatch, ours=True).get()
    assert session == "another session"


def test_a_session_of_the_program_whose_jvm_stands_still_is_waited_for_by_restarts(
    stillness: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(NoAnswer) as raised:
        holder_of(stillness, monkeypatch, ours=False).get()
    assert raised.value.restartable


def test_a_run_ends_though_the_jvm_stands_still(stillness: threading.Event, monkeypatch: pytest.MonkeyPatch) -> None:
    holder_of(stillness, monkeypatch, ours=True).close()
