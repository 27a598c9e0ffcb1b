"""The fixtures of tests on Spark: light JVMs, and one session for all that need no JVM of their own."""

from __future__ import annotations

import os
import sys
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.crash_cells.rig import Rig, load_input
from tests.spark.jvms import VARIABLE, light_options, local_session
from twopc.testing.broker import Broker

SLOTS = 6
"""Thrice what a job here needs: the task of a zombie keeps its slot until its worker has ended."""

START_SECONDS = 300.0
"""Three JVMs start one after the other, which takes a busy machine long."""


@pytest.fixture(scope="session")
def light_jvms(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What to add to the environment of a process that starts Spark."""
    return {VARIABLE: light_options(tmp_path_factory.mktemp("classes"))}


@pytest.fixture(scope="session")
def session(light_jvms: dict[str, str]) -> Iterator[SparkSession]:
    """A session of the user's own, on which Spark does not kill the Python worker of a task that it gives up."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    settings = {"spark.task.reaper.enabled": "false", "spark.python.task.killTimeout": "1h"}
    with pytest.MonkeyPatch.context() as patch:
        for name, value in light_jvms.items():
            patch.setenv(name, value)
        started = local_session("twopc-tests", f"local[{SLOTS}]", **settings)
    yield started
    started.stop()


@pytest.fixture(scope="session")
def rig_input(broker: Broker) -> str:
    """An input that is there already; every drill writes to an output of its own."""
    name = f"drill-{uuid.uuid4().hex[:6]}-in"
    load_input(broker.bootstrap_servers, name)
    return name


@pytest.fixture
def rig(broker: Broker, light_jvms: dict[str, str], rig_input: str, tmp_path: Path, topic: Callable[[], str]) -> Rig:
    """A job of its own on that input, on Spark."""
    made = Rig(
        broker.bootstrap_servers,
        tmp_path,
        topic(),
        rig_input,
        settings={"host": "spark", "master": "local[2]", "checkpoint_timeout": "60s"},
        environment=dict(light_jvms),
        patience_seconds=START_SECONDS,
    )
    made.create_output()
    return made
