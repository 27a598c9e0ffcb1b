"""kill -9 on Spark: of a Python worker, of the driver, of the coordinator."""

import os
import signal
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from tests.drills.harness import Drill, crash_at
from tests.drills.test_kills import coordinator
from twopc.crashpoints import CrashPoint
from twopc.testing.broker import Broker
from twopc.testing.ports import free_port

pytestmark = pytest.mark.spark


@pytest.fixture
def drill(broker: Broker, tmp_path: Path, topic: Callable[[], str]) -> Drill:
    made = Drill(broker.bootstrap_servers, tmp_path, topic(), host="spark")
    made.load()
    return made


@pytest.mark.parametrize(
    "moment",
    [CrashPoint.AFTER_ACK, CrashPoint.BEFORE_COMMIT, CrashPoint.AFTER_END_TXN],
    ids=lambda moment: moment.name.lower(),
)
def test_a_python_worker_is_killed_from_outside(drill: Drill, moment: CrashPoint) -> None:
    job = drill.start(crash_at(moment, hold=True))
    os.kill(drill.wait_until_reached(job), signal.SIGKILL)
    report = drill.finish(job)
    assert report["attempts"] == 2
    drill.judge()


def test_the_driver_is_killed_and_the_same_command_goes_on(drill: Drill) -> None:
    first = drill.start(crash_at(CrashPoint.BEFORE_COMMIT, hold=True))
    drill.wait_until_reached(first)
    first.kill()
    first.communicate()
    drill.finish(drill.start())
    drill.judge()


def test_the_coordinator_is_killed_and_the_job_goes_on_without_a_restart(drill: Drill) -> None:
    port = free_port()
    drill.environment["TWOPC_COORDINATOR"] = f"127.0.0.1:{port}"
    with coordinator(drill, port) as first:
        job = drill.start(crash_at(CrashPoint.AFTER_ACK, hold=True))
        drill.wait_until_reached(job)
        first.kill()
        first.wait()
    with coordinator(drill, port):
        drill.release()
        report = drill.finish(job)
    assert report["attempts"] == 1
    drill.judge()


def test_the_jvm_is_killed_and_the_driver_starts_another(drill: Drill) -> None:
    job = drill.start(crash_at(CrashPoint.BEFORE_COMMIT, hold=True))
    worker = psutil.Process(drill.wait_until_reached(job))
    (jvm,) = [process for process in worker.parents() if process.name() == "java"]
    jvm.kill()
    report = drill.finish(job)
    assert report["attempts"] == 2
    drill.judge()
