"""A program that has a SparkSession of its own: its job can't make another one when that is gone."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from twopc.faults.process import ManagedProcess, await_true
from twopc.testing.broker import Broker
from twopc.testing.topics import create_topic

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]

PATIENCE_SECONDS = 300.0

PROGRAM = """
import sys
from pyspark.sql import SparkSession
from tests.spark.jvms import local_session
from twopc import Job, KafkaSink, KafkaSource, events

name, servers, checkpoints = sys.argv[1:]

def note(event):
    if isinstance(event, (events.AttemptStarted, events.CheckpointCompleted)):
        print(type(event).__name__, event.attempt, file=sys.stderr)

local_session("mine", "local[2]")
job = Job(name)
job.source(KafkaSource(f"{name}-in")).sink(KafkaSink(f"{name}-out"))
job.run(bootstrap_servers=servers, checkpoint_dir=checkpoints, parallelism=2, on_event=note)
"""


def test_a_job_whose_programs_jvm_is_killed_ends_by_name_and_is_not_tried_again_and_again(
    broker: Broker, light_jvms: dict[str, str], topic: Callable[[], str], tmp_path: Path
) -> None:
    name = topic()
    for suffix in ("in", "out"):
        create_topic(broker.bootstrap_servers, f"{name}-{suffix}", 2)
    (tmp_path / "program.py").write_text(PROGRAM)
    command = [sys.executable, str(tmp_path / "program.py"), name, broker.bootstrap_servers, str(tmp_path / "stored")]
    environment = (
        os.environ | light_jvms | {"PYTHONPATH": str(Path(__file__).parents[2]), "PYSPARK_PYTHON": sys.executable}
    )
    with ManagedProcess(command, environment, tmp_path / "log", PATIENCE_SECONDS) as program:

        def runs() -> bool:
            assert program.exit_code is None, program.last_words(50)
            return "CheckpointCompleted 1" in program.log.read_text()

        await_true(runs, "no checkpoint completed", PATIENCE_SECONDS)
        (jvm,) = [child for child in psutil.Process(program.pid).children() if child.name() == "java"]
        jvm.kill()
        assert program.wait() == 1
    said = program.log.read_text()
    assert "Spark's JVM is gone, and this run can't start another one" in program.last_words(1)
    assert said.count("trying again") == 1
