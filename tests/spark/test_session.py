"""What starting a session leaves as it was."""

from __future__ import annotations

import signal
from typing import Any

import pytest
from pyspark import SparkContext
from pyspark.sql import SparkSession

from twopc.spark import session
from twopc.spark.session import SessionHolder


def test_ctrl_c_does_after_the_start_of_a_session_what_it_did_before(monkeypatch: pytest.MonkeyPatch) -> None:
    """PySpark has it cancel all stages, so that a job could take no last checkpoint."""

    def as_pyspark_starts(_builder: Any) -> Any:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        return object()

    monkeypatch.setattr(session, "start_jvm", lambda _settings: None)
    monkeypatch.setattr(session, "find_java", lambda: None)
    monkeypatch.setattr(SparkContext, "_active_spark_context", None)
    monkeypatch.setattr(SparkSession.Builder, "getOrCreate", as_pyspark_starts)
    before = signal.getsignal(signal.SIGINT)
    SessionHolder("local[1]").get()
    assert signal.getsignal(signal.SIGINT) is before
