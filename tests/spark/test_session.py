"""What starting a session leaves as it was."""

from __future__ import annotations

import signal
import threading
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark import SparkContext
from pyspark.sql import SparkSession

from twopc.spark import jvm, session
from twopc.spark.session import SessionHolder


def test_ctrl_c_does_after_the_start_of_a_session_what_it_did_before(monkeypatch: pytest.MonkeyPatch) -> None:
    """PySpark has it cancel all stages, so that a job could take no last checkpoint."""

    def as_pyspark_starts(_builder: Any) -> Any:
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, signal.SIG_IGN)
        return object()

    monkeypatch.setattr(jvm.JvmStart, "run", lambda *_: None)
    monkeypatch.setattr(session, "SparkConf", lambda: SimpleNamespace(contains=lambda _name: False))
    monkeypatch.setattr(session, "find_java", lambda: None)
    monkeypatch.setattr(SparkContext, "_active_spark_context", None)
    monkeypatch.setattr(SparkSession.Builder, "getOrCreate", as_pyspark_starts)
    before = signal.getsignal(signal.SIGINT)
    SessionHolder("local[1]").get()
    assert signal.getsignal(signal.SIGINT) is before
