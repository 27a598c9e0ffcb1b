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
from twopc.spark.jvm import JvmStart
from twopc.spark.quick_start import QuickStart

NO_FOLDER = (
    'Exception in thread "main" java.io.IOException: Failed to create a temp directory (under /tmp)\n'
    "\tat org.apache.spark.util.SparkFileUtils.createDirectory(SparkFileUtils.scala:62)\n"
)
NO_MACHINE = "Invalid maximum heap size: -Xmx9q\nError: Could not create the Java Virtual Machine.\n"


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
def test_a_jvm_that_does_not_start_says_why_and_leaves_nothing(
    words: str, reason: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))

    def fail(_conf: object, popen_kwargs: Mapping[str, Any]) -> NoReturn:
        os.write(popen_kwargs["stderr"], words.encode())
        raise PySparkRuntimeError(errorClass="JAVA_GATEWAY_EXITED", messageParameters={})

    monkeypatch.setattr(SparkContext, "_gateway", None)
    monkeypatch.setattr(jvm, "launch_gateway", fail)
    with pytest.raises(RuntimeError) as failed:
        JvmStart(QuickStart("local[1]")).run({}, [])
    assert reason in str(failed.value)
    assert list(tmp_path.iterdir()) == []
