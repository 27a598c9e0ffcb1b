"""What Spark's JVM is told at its start, and what it says where it does not start."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

import pytest
from pyspark import SparkContext
from pyspark.errors import PySparkRuntimeError

from twopc.spark import jvm
from twopc.spark.jvm import JvmStart, options_of_surroundings

NO_FOLDER = (
    'Exception in thread "main" java.io.IOException: Failed to create a temp directory (under /tmp)\n'
    "\tat org.apache.spark.util.SparkFileUtils.createDirectory(SparkFileUtils.scala:62)\n"
)
NO_MACHINE = "Invalid maximum heap size: -Xmx9q\nError: Could not create the Java Virtual Machine.\n"


def test_java_takes_the_folder_for_temporary_files_that_python_takes(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("tempfile.tempdir", None)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    assert options_of_surroundings() == [f'"-Djava.io.tmpdir={tmp_path}"']
    monkeypatch.delenv("TMPDIR")
    assert options_of_surroundings() == []


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (NO_FOLDER, "Java has not started: java.io.IOException: Failed to create a temp directory (under /tmp)"),
        (
            f"Picked up JAVA_TOOL_OPTIONS: -Xmx9q\n{NO_MACHINE}",
            "Java has not started: Invalid maximum heap size: -Xmx9q",
        ),
        ("", "JAVA_GATEWAY_EXITED"),
    ],
)
def test_a_jvm_that_does_not_start_says_why(words: str, reason: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_conf: object, popen_kwargs: Mapping[str, Any]) -> NoReturn:
        os.write(popen_kwargs["stderr"], words.encode())
        raise PySparkRuntimeError(errorClass="JAVA_GATEWAY_EXITED", messageParameters={})

    monkeypatch.setattr(SparkContext, "_gateway", None)
    monkeypatch.setattr(jvm, "launch_gateway", fail)
    with pytest.raises(RuntimeError) as failed:
        JvmStart().run({}, "")
    assert reason in str(failed.value)
