"""What `twopc version` reports."""

from __future__ import annotations

import json
import platform

import pytest
from typer.testing import CliRunner

from twopc.cli import app


def test_versions_are_there_as_json() -> None:
    found = json.loads(CliRunner().invoke(app, ["version", "-o", "json"]).stdout)
    assert found["python"] == platform.python_version()
    assert found.keys() >= {"twopc", "pyspark", "confluent-kafka", "rocksdict", "java"}
    assert found["records"] in {"confluent-kafka, one by one", "compiled, by batches"}
    assert found["twopc"] is not None


def test_a_missing_java_is_said_and_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", "nowhere")
    answer = CliRunner().invoke(app, ["version"])
    assert answer.exit_code == 0
    assert [line.split() for line in answer.stdout.splitlines() if line.startswith("java")] == [["java", "missing"]]


def test_compiled_parts_that_are_turned_off_are_said_to_be(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TWOPC_NATIVE", "0")
    found = json.loads(CliRunner().invoke(app, ["version", "-o", "json"]).stdout)
    assert found["compiled"] == "turned off (TWOPC_NATIVE=0)"
