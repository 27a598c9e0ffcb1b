from __future__ import annotations

import pytest
from pyspark import SparkContext

from twopc.errors import ConfigurationError
from twopc.spark.master import DEFAULT_MASTER, master_of


@pytest.fixture(autouse=True)
def _no_session(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SparkContext, "_active_spark_context", None)


def test_without_a_master_a_job_runs_on_this_machine() -> None:
    assert master_of("") == DEFAULT_MASTER


def test_the_master_that_is_named_is_used() -> None:
    assert master_of("spark://10.0.0.5:7077") == "spark://10.0.0.5:7077"


def test_the_master_of_a_session_that_is_there_goes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    class Session:
        master = "spark://10.0.0.5:7077"

    monkeypatch.setattr(SparkContext, "_active_spark_context", Session())
    assert master_of("local[2]") == "spark://10.0.0.5:7077"


def test_a_master_that_spark_does_not_know_is_named_before_a_jvm_starts() -> None:
    with pytest.raises(ConfigurationError, match="there is no Spark master 'sparc://x': give --master"):
        master_of("sparc://x")
