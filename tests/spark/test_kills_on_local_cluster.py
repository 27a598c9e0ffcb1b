"""kill -9 where executors are processes of their own: of an executor, of its Python worker, of the driver; and a pause.

Each at a named place, and executors at random too; the output is exact after each.
"""

from __future__ import annotations

import random
import signal
import time
from contextlib import suppress
from dataclasses import replace

import psutil
import pytest

from tests.crash_cells.cells import CHECKPOINT, held
from tests.crash_cells.judge import judge
from tests.crash_cells.rig import Rig
from tests.spark.zombies import wait_until_gone
from twopc.checkpoints.catalog import read_job
from twopc.faults.points import CrashPoint
from twopc.storage.local import LocalStore
from twopc.storage.store import has_ledger

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]

EXECUTOR = "org.apache.spark.executor.CoarseGrainedExecutorBackend"
RANDOM_KILLS = 2
SLOWLY = {"DRILL_PAUSE_SECONDS": "0.12"}
"""So that a job takes seconds, however fast the machine is."""


@pytest.fixture(autouse=True)
def cluster(rig: Rig) -> None:
    rig.settings["master"] = "local-cluster[2,1,1024]"


def executor_of(worker: psutil.Process) -> psutil.Process:
    above = worker.parents()
    executors = [parent for parent in above if is_executor(parent)]
    assert len(executors) == 1, f"{worker} is below {above}, of which these are executors: {executors}"
    return executors[0]


def is_executor(process: psutil.Process) -> bool:
    try:
        return EXECUTOR in process.cmdline()
    except psutil.ZombieProcess:
        # It has ended, and nobody has asked for it yet.
        return False


def test_an_executor_is_killed_then_a_python_worker_whose_executor_lives_then_another_executor(rig: Rig) -> None:
    first = held(CrashPoint.AFTER_ACK)
    # The input is paced for seven checkpoints: the last place must not lie behind them. The second must lie behind the
    # checkpoint of the first, which may complete, and be committed by another thread, before its worker is killed.
    second = replace(held(CrashPoint.BEFORE_COMMIT), checkpoint=CHECKPOINT + 1)
    third = replace(held(CrashPoint.AFTER_END_TXN), checkpoint=5)
    with rig.run(first, second, third) as job:
        executor_of(psutil.Process(rig.await_arm(first))).kill()
        worker = psutil.Process(rig.await_arm(second))
        executor = executor_of(worker)
        worker.kill()
        other = psutil.Process(rig.await_arm(third))
        assert executor.is_running()
        executor_of(other).kill()
        assert job.finish()["attempts"] == 4
    assert judge(rig) == []


@pytest.mark.proof
def test_the_driver_is_killed_and_its_executors_end_with_it(rig: Rig) -> None:
    with rig.run(arm := held(CrashPoint.BEFORE_COMMIT)) as first:
        executor = executor_of(psutil.Process(rig.await_arm(arm)))
        first.kill()
    with rig.run() as again:
        again.finish()
    assert judge(rig) == []
    wait_until_gone(executor)


@pytest.mark.proof
def test_executors_are_killed_at_random(rig: Rig) -> None:
    chance = random.Random(seed := random.randrange(1_000_000))
    rig.environment |= SLOWLY
    with rig.run() as job:
        for _ in range(RANDOM_KILLS):
            wait_for_checkpoint_of_a_new_attempt(rig, last=max(attempts_with_checkpoints(rig), default=0))
            time.sleep(chance.uniform(0.0, 1.0))
            executors = with_word(job.pid, EXECUTOR)
            if executors:
                chance.choice(executors).kill()
        assert job.finish()["attempts"] != 1, f"nothing was killed in time (seed {seed})"
    assert judge(rig) == []


@pytest.mark.proof
def test_a_worker_that_slept_with_its_executor_finds_itself_fenced(rig: Rig) -> None:
    rig.settings["master"] = "local-cluster[3,1,1024]"
    rig.environment |= SLOWLY
    with rig.run(arm := held(CrashPoint.AFTER_NEXT_WRITE)) as job:
        sleeper = psutil.Process(rig.await_arm(arm))
        machine = [sleeper, *sleeper.parents()]
        machine = machine[: machine.index(executor_of(sleeper)) + 1]
        for process in reversed(machine):
            process.send_signal(signal.SIGSTOP)
        rig.release(arm)
        other_worker(job.pid, sleeper).kill()
        wait_for_checkpoint_of_a_new_attempt(rig, last=1)
        sleeper.send_signal(signal.SIGCONT)
        assert job.finish()["attempts"] == 2
        for process in reversed(machine[1:]):
            with suppress(psutil.NoSuchProcess):
                process.send_signal(signal.SIGCONT)
    assert judge(rig) == []


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


def attempts_with_checkpoints(rig: Rig) -> set[int]:
    store = LocalStore(rig.checkpoint_dir)
    if not has_ledger(store.within(rig.job)):
        return set()  # the driver is still starting
    return {each.attempt for each in read_job(store, rig.job).completed}


def wait_for_checkpoint_of_a_new_attempt(rig: Rig, *, last: int) -> None:
    """Wait until an attempt after this one has completed a checkpoint."""
    rig.await_true(
        lambda: max(attempts_with_checkpoints(rig), default=0) > last,
        f"no attempt after {last} completed a checkpoint",
    )
