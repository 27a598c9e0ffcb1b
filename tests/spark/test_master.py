from __future__ import annotations

import socket

import pytest
from pyspark import SparkContext

from twopc.errors import ConfigurationError, Unavailable
from twopc.spark.master import DEFAULT_MASTER, await_reachable, master_of


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


@pytest.mark.parametrize("master", ["spark://10.0.0.5", "spark://", "spark://a:1,b", "spark://a:x"])
def test_an_address_that_is_none_is_named_before_a_jvm_starts(master: str) -> None:
    with pytest.raises(ConfigurationError, match="names no address: write spark://HOST:PORT"):
        master_of(master)


def test_one_of_several_standalone_masters_is_enough_and_other_masters_have_no_address_to_try() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening, socket.create_server(("127.0.0.1", 0)) as closed:
        there, gone = listening.getsockname()[1], closed.getsockname()[1]
        closed.close()
        await_reachable(f"spark://127.0.0.1:{gone},127.0.0.1:{there}", 0)
        with pytest.raises(Unavailable, match=r"Nobody accepts connections there \(\[Errno 111\]"):
            await_reachable(f"spark://127.0.0.1:{gone}", 0)
    for other in ("local[2]", "yarn", "k8s://10.0.0.5:6443"):
        await_reachable(other, 0)
