"""Which path records take, and what is said where it is another than was asked for."""

from __future__ import annotations

import sys
from functools import cache
from types import SimpleNamespace
from typing import Any

import pytest

from twopc import compiled as finding
from twopc.kafka import native
from twopc.kafka.input.fetching import ColumnFetching, MessageFetching, fetching


@pytest.fixture(autouse=True)
def forgotten(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Let every test choose anew."""
    monkeypatch.setattr(finding, "_found", finding._found.__wrapped__)
    native.batches.cache_clear()
    yield
    native.batches.cache_clear()


def test_nothing_is_compiled_in_where_it_is_turned_off(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv(native.VARIABLE, "0")
    assert isinstance(fetching(), MessageFetching)
    assert native.in_use() == "confluent-kafka, one by one"
    assert caplog.messages == []


@pytest.mark.parametrize("said", [None, "", "1"])
def test_records_are_read_as_columns_unless_that_is_turned_off(
    compiled: Any, monkeypatch: pytest.MonkeyPatch, said: str | None
) -> None:
    native.batches.cache_clear()
    monkeypatch.delenv(native.VARIABLE)
    if said is not None:
        monkeypatch.setenv(native.VARIABLE, said)
    assert isinstance(fetching(), ColumnFetching)
    assert native.in_use() == "compiled, by batches"


def test_a_version_of_librdkafka_that_is_not_known_is_said_once_and_left_alone(
    compiled: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    native.batches.cache_clear()
    monkeypatch.setattr(native, "KNOWN_VERSIONS", frozenset({(1, 9)}))
    assert [type(fetching()) for _ in range(2)] == [MessageFetching] * 2
    (said,) = caplog.messages
    assert "is not known to the compiled part, which knows 1.9" in said


def test_a_build_of_other_sources_is_said_once_and_left_alone(
    compiled: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    native.batches.cache_clear()
    monkeypatch.setattr(finding, "_found", cache(finding._found))
    monkeypatch.setattr(finding, "mark_of", lambda folder: "of others")
    assert [type(fetching()) for _ in range(2)] == [MessageFetching] * 2
    (said,) = caplog.messages
    assert "build it again (make setup)" in said
    assert native.in_use() == "confluent-kafka, one by one"


@pytest.fixture
def wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let nothing be chosen."""
    monkeypatch.setenv(native.VARIABLE, "")


def test_what_was_not_built_is_said_once(
    wanted: None, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setitem(sys.modules, "twopc.kafka.native._batches", None)
    assert [type(fetching()) for _ in range(2)] == [MessageFetching] * 2
    (said,) = caplog.messages
    assert "install twopc again where there is a C compiler" in said


@pytest.mark.parametrize("path", ["/a;b/_batches.so", "/a\udcff/_batches.so"])
def test_a_path_that_librdkafka_cannot_be_told_is_said_and_left_alone(
    compiled: Any, wanted: None, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    monkeypatch.setattr(compiled, "__file__", path)
    module, why_not = native._found()
    assert module is None
    assert "a semicolon or is not UTF-8" in why_not


def test_a_library_without_a_function_that_is_called_is_said_and_left_alone(
    wanted: None, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def load(path: str) -> int:
        raise ImportError("there is no rd_kafka_producev in this process")

    monkeypatch.setitem(
        sys.modules,
        "twopc.kafka.native._batches",
        SimpleNamespace(__file__="there.so", load=load, __spec__=SimpleNamespace(origin=None)),
    )
    assert isinstance(fetching(), MessageFetching)
    (said,) = caplog.messages
    assert "librdkafka can't be called: there is no rd_kafka_producev" in said


def test_what_is_no_library_of_the_process_has_no_function(compiled: Any) -> None:
    with pytest.raises(ImportError, match="there is no /nowhere in this process"):
        compiled.load("/nowhere")
