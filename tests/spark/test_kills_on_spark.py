"""kill -9 on Spark: of a Python worker, of the driver, of the coordinator; and Ctrl-C."""

import os
import signal
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from tests.crash_cells.cells import held
from tests.crash_cells.judge import judge
from tests.crash_cells.rig import Rig
from twopc.faults.points import CrashPoint
from twopc.java import find_java
from twopc.testing.ports import free_port

FAILED_STARTS = 4
"""A start begins a JVM up to three times, so there were two."""

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]


@pytest.mark.proof
def test_python_workers_are_killed_from_outside_one_after_the_other(rig: Rig) -> None:
    # The first holds up checkpoints, the second commits: nobody comes to a later place before its turn.
    moments = {CrashPoint.AFTER_ACK: 3, CrashPoint.BEFORE_COMMIT: 6, CrashPoint.AFTER_END_TXN: 9}
    arms = [replace(held(moment), checkpoint=checkpoint) for moment, checkpoint in moments.items()]
    with rig.run(*arms) as job:
        for arm in arms:
            os.kill(rig.await_arm(arm), signal.SIGKILL)
        assert job.finish()["attempts"] == 1 + len(arms)
    assert judge(rig) == []


@pytest.mark.proof
def test_the_coordinator_is_killed_and_the_job_goes_on_without_a_restart(rig: Rig) -> None:
    port = free_port()
    arm = held(CrashPoint.AFTER_ACK)
    with rig.coordinator(port) as first, rig.run(arm, coordinator=f"127.0.0.1:{port}") as job:
        rig.await_arm(arm)
        first.kill()
        with rig.coordinator(port):
            rig.release(arm)
            assert job.finish()["attempts"] == 1
    assert judge(rig) == []


@pytest.mark.proof
def test_a_jvm_that_stands_still_is_ended_when_its_attempt_fails(rig: Rig) -> None:
    with rig.run(arm := held(CrashPoint.BEFORE_COMMIT)) as job:
        worker = psutil.Process(rig.await_arm(arm))
        (jvm,) = [process for process in worker.parents() if process.name() == "java"]
        jvm.suspend()
        worker.kill()
        assert job.finish()["attempts"] == 2
        assert not jvm.is_running()
    assert judge(rig) == []


@pytest.mark.proof
def test_a_jvm_that_does_not_start_again_at_once_is_tried_again(rig: Rig, tmp_path: Path) -> None:
    java = tmp_path / "java-home" / "bin" / "java"
    java.parent.mkdir(parents=True)
    broken, tried = tmp_path / "broken", tmp_path / "tried"
    java.write_text(f'#!/bin/sh\n[ -e {broken} ] && {{ echo >> {tried}; exit 1; }}\nexec {find_java()} "$@"\n')
    java.chmod(0o755)
    rig.environment["JAVA_HOME"] = str(java.parent.parent)
    with rig.run(arm := held(CrashPoint.BEFORE_COMMIT)) as job:
        worker = psutil.Process(rig.await_arm(arm))
        (jvm,) = [process for process in worker.parents() if process.name() == "java"]
        broken.touch()
        jvm.kill()
        rig.await_true(lambda: tried.exists() and len(tried.read_text()) > FAILED_STARTS, "no start was tried again")
        broken.unlink()
        assert job.finish()["attempts"] > 2
    assert judge(rig) == []


def test_the_first_ctrl_c_takes_a_last_checkpoint(rig: Rig) -> None:
    with rig.run(arm := held(CrashPoint.AFTER_COMMITTED_SENT)) as job:
        rig.await_arm(arm)
        job.send(signal.SIGINT)
        rig.release(arm)
        assert job.finish()["stopped"] is True
