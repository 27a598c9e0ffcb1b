"""kill -9 where executors are processes of their own: of an executor, of its Python worker, of the driver; and a pause.

Each at a named place, and executors at random too; the output is exact after each.
"""

from __future__ import annotations

import random
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from tests.drills import harness
from tests.drills.harness import Drill, crash_at
from twopc.checkpoints import read_job
from twopc.crashpoints import CrashPoint
from twopc.testing.broker import Broker

pytestmark = [pytest.mark.spark, pytest.mark.timeout(400)]

EXECUTOR = "org.apache.spark.executor.CoarseGrainedExecutorBackend"
RANDOM_KILLS = 2
START_SECONDS = 180.0
"""Three JVMs start one after the other, which takes a busy machine long."""


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(harness, "TIMEOUT_SECONDS", START_SECONDS)


@pytest.fixture
def drill(broker: Broker, tmp_path: Path, topic: Callable[[], str]) -> Drill:
    return Drill(broker.bootstrap_servers, tmp_path, topic(), host="spark", master="local-cluster[2,1,1024]")


def executor_of(worker: psutil.Process) -> psutil.Process:
    (executor,) = [parent for parent in worker.parents() if EXECUTOR in parent.cmdline()]
    return executor


@pytest.mark.parametrize(
    "moment", [CrashPoint.AFTER_ACK, CrashPoint.AFTER_END_TXN], ids=lambda moment: moment.name.lower()
)
def test_an_executor_is_killed(drill: Drill, moment: CrashPoint) -> None:
    drill.load()
    job = drill.start(crash_at(moment, hold=True))
    executor_of(psutil.Process(drill.wait_until_reached(job))).kill()
    assert drill.finish(job)["attempts"] == 2
    drill.judge()


def test_a_python_worker_is_killed_and_its_executor_lives(drill: Drill) -> None:
    drill.load()
    job = drill.start(crash_at(CrashPoint.BEFORE_COMMIT, hold=True))
    worker = psutil.Process(drill.wait_until_reached(job))
    executor = executor_of(worker)
    worker.kill()
    assert executor.is_running()
    assert drill.finish(job)["attempts"] == 2
    drill.judge()


def test_the_driver_is_killed_and_its_executors_end_with_it(drill: Drill) -> None:
    drill.load()
    first = drill.start(crash_at(CrashPoint.BEFORE_COMMIT, hold=True))
    executor = executor_of(psutil.Process(drill.wait_until_reached(first)))
    first.kill()
    first.communicate()
    drill.finish(drill.start())
    drill.judge()
    assert not executor.is_running()


def test_executors_are_killed_at_random(drill: Drill) -> None:
    chance = random.Random(seed := random.randrange(1_000_000))
    drill.records = 12_000
    drill.load()
    job = drill.start()
    for _ in range(RANDOM_KILLS):
        wait_for_checkpoint_of_a_new_attempt(drill, last=max(attempts_with_checkpoints(drill), default=0))
        time.sleep(chance.uniform(0.0, 1.0))
        executors = with_word(job.pid, EXECUTOR)
        if executors:
            chance.choice(executors).kill()
    assert drill.finish(job)["attempts"] != 1, f"nothing was killed in time (seed {seed})"
    drill.judge()


def test_a_worker_that_slept_with_its_executor_finds_itself_fenced(drill: Drill) -> None:
    drill.master = "local-cluster[3,1,1024]"
    drill.records = 8_000
    drill.load()
    job = drill.start(crash_at(CrashPoint.AFTER_NEXT_WRITE, hold=True))
    sleeper = psutil.Process(drill.wait_until_reached(job))
    machine = [sleeper, *sleeper.parents()]
    machine = machine[: machine.index(executor_of(sleeper)) + 1]
    for process in reversed(machine):
        process.send_signal(signal.SIGSTOP)
    drill.release()
    other_worker(job.pid, sleeper).kill()
    wait_for_checkpoint_of_a_new_attempt(drill, last=1)
    sleeper.send_signal(signal.SIGCONT)
    assert drill.finish(job)["attempts"] == 2
    for process in reversed(machine[1:]):
        with suppress(psutil.NoSuchProcess):
            process.send_signal(signal.SIGCONT)
    drill.judge()


def with_word(driver: int, word: str) -> list[psutil.Process]:
    """The processes below the driver that have this word in their command."""
    found = []
    for process in psutil.Process(driver).children(recursive=True):
        with suppress(psutil.Error):
            if word in process.cmdline():
                found.append(process)
    return found


def other_worker(driver: int, sleeper: psutil.Process) -> psutil.Process:
    """The Python worker of the other subtask: its parent, the daemon, has the same command."""
    family = with_word(driver, "pyspark.daemon")
    daemons = {each.pid for each in family}
    (other,) = [each for each in family if each.ppid() in daemons and each != sleeper]
    return other


def attempts_with_checkpoints(drill: Drill) -> set[int]:
    folder = drill.checkpoint_dir / drill.job / "ledger"
    return {each.attempt for each in read_job(drill.checkpoint_dir, drill.job).completed} if folder.is_dir() else set()


def wait_for_checkpoint_of_a_new_attempt(drill: Drill, *, last: int) -> None:
    """Wait until an attempt after this one has completed a checkpoint."""
    deadline = time.monotonic() + START_SECONDS
    while max(attempts_with_checkpoints(drill), default=0) <= last:
        assert time.monotonic() < deadline, f"no attempt after {last} completed a checkpoint"
        time.sleep(0.05)
