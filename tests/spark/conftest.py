"""One Spark session for all tests that need no JVM of their own: a session takes seconds to start."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

SLOTS = 6
"""Thrice what a job here needs: the task of a zombie keeps its slot until its worker has ended."""


@pytest.fixture(scope="session")
def session() -> Iterator[SparkSession]:
    """A session of the user's own, on which Spark does not kill the Python worker of a task that it gives up."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.task.reaper.enabled": "false",
        "spark.python.task.killTimeout": "1h",
    }
    builder = SparkSession.builder.appName("twopc-tests").master(f"local[{SLOTS}]")
    for name, value in settings.items():
        builder = builder.config(name, value)
    started = builder.getOrCreate()
    started.sparkContext.setLogLevel("OFF")
    yield started
    started.stop()
