"""kill -9 of driver or coordinator while a worker stands at moments of a checkpoint, and of everything at once.

The same command goes on, and the output is exact. Whoever comes to a crash point itself dies there in `test_cells.py`.
"""

import os
import shutil
import signal

import pytest

from tests.crash_cells.cells import held
from tests.crash_cells.judge import judge, nothing_is_left
from tests.crash_cells.rig import Rig
from tests.leak_audit.processes import marked_processes
from twopc.faults.points import CrashPoint
from twopc.testing.ports import free_port

pytestmark = pytest.mark.drill

MOMENTS = {
    "after-the-flush": CrashPoint.IN_PRE_COMMIT_AFTER_FLUSH,
    "after-the-ack": CrashPoint.AFTER_ACK,
    "in-the-middle-of-commit": CrashPoint.AFTER_END_TXN,
}

each_moment = pytest.mark.parametrize(
    "moment",
    [
        pytest.param(moment, id=name, marks=() if moment is CrashPoint.AFTER_END_TXN else pytest.mark.proof)
        for name, moment in MOMENTS.items()
    ],
)


@each_moment
def test_the_driver_is_killed(rig: Rig, moment: CrashPoint) -> None:
    with rig.run(arm := held(moment)) as first:
        rig.await_arm(arm)
        first.kill()
    with rig.run() as again:
        again.finish()
    assert judge(rig) == []


@each_moment
def test_the_coordinator_is_killed_and_the_job_goes_on_without_a_restart(rig: Rig, moment: CrashPoint) -> None:
    port = free_port()
    with rig.coordinator(port) as first, rig.run(arm := held(moment), coordinator=f"127.0.0.1:{port}") as job:
        rig.await_arm(arm)
        first.kill()
        with rig.coordinator(port):
            rig.release(arm)
            assert job.finish()["attempts"] == 1
    assert judge(rig) == []


def test_everything_is_killed_at_once(rig: Rig) -> None:
    with rig.run(arm := held(CrashPoint.BEFORE_COMMIT)) as first:
        os.kill(rig.await_arm(arm), signal.SIGKILL)
        first.kill()
    with rig.run() as again:
        again.finish()
    assert judge(rig) == []


def test_a_worker_that_is_killed_leaves_no_folder_behind_though_nothing_comes_after_it(rig: Rig) -> None:
    with rig.run(arm := held(CrashPoint.BEFORE_COMMIT), restart_strategy="none") as job:
        os.kill(rig.await_arm(arm), signal.SIGKILL)
        assert job.wait() != 0
    assert list(rig.temporary.iterdir()) == []


def test_a_stopped_job_takes_a_last_checkpoint_and_the_same_command_goes_on(rig: Rig) -> None:
    with rig.run(arm := held(CrashPoint.AFTER_COMMITTED_SENT)) as first:
        rig.await_arm(arm)
        first.send(signal.SIGTERM)
        rig.release(arm)
        assert first.finish()["stopped"] is True
    with rig.run() as again:
        assert again.finish()["records_in"] != rig.records
    assert judge(rig) == []


def test_a_job_whose_checkpoints_were_deleted_still_ends_what_its_earlier_attempts_left_open(rig: Rig) -> None:
    for attempt in ("first", "second"):
        with rig.run(arm := held(CrashPoint.BEFORE_COMMIT, name=f"-{attempt}")) as killed:
            rig.await_arm(arm)
            killed.kill()
    # A worker ends with its driver, but a moment later, and may just be storing a snapshot.
    rig.await_true(lambda: not any(marked_processes(*rig.marker)), "a worker did not end with its driver")
    shutil.rmtree(rig.checkpoint_dir)
    with rig.run(restore_from="none") as last:
        last.finish()
    assert list(nothing_is_left(rig)) == []
