"""kill -9 of driver or coordinator while a worker stands at each moment of a checkpoint, and of everything at once.

The same command goes on, and the output is exact. Whoever comes to a crash point itself dies there in `test_cells.py`.
"""

import os
import shutil
import signal

import pytest

from twopc.faults.points import CrashPoint
from twopc.testing.drill import Drill, judge
from twopc.testing.drill.arm import held
from twopc.testing.drill.judge import nothing_is_left
from twopc.testing.outsider.processes import marked_processes
from twopc.testing.ports import free_port

pytestmark = pytest.mark.drill

MOMENTS = {
    "before-pre-commit": CrashPoint.BEFORE_PRE_COMMIT,
    "after-the-flush": CrashPoint.IN_PRE_COMMIT_AFTER_FLUSH,
    "after-the-ack": CrashPoint.AFTER_ACK,
    "after-completion-before-commit": CrashPoint.BEFORE_COMMIT,
    "in-the-middle-of-commit": CrashPoint.AFTER_END_TXN,
    "after-commit": CrashPoint.AFTER_COMMITTED_SENT,
}

each_moment = pytest.mark.parametrize("moment", MOMENTS.values(), ids=MOMENTS.keys())


@each_moment
def test_the_driver_is_killed(drill: Drill, moment: CrashPoint) -> None:
    with drill.run(arm := held(moment)) as first:
        drill.await_arm(arm)
        first.kill()
    with drill.run() as again:
        again.finish()
    assert judge(drill) == []


@each_moment
def test_the_coordinator_is_killed_and_the_job_goes_on_without_a_restart(drill: Drill, moment: CrashPoint) -> None:
    port = free_port()
    with drill.coordinator(port) as first, drill.run(arm := held(moment), coordinator=f"127.0.0.1:{port}") as job:
        drill.await_arm(arm)
        first.kill()
        with drill.coordinator(port):
            drill.release(arm)
            assert job.finish()["attempts"] == 1
    assert judge(drill) == []


def test_everything_is_killed_at_once(drill: Drill) -> None:
    with drill.run(arm := held(CrashPoint.BEFORE_COMMIT)) as first:
        os.kill(drill.await_arm(arm), signal.SIGKILL)
        first.kill()
    with drill.run() as again:
        again.finish()
    assert judge(drill) == []


def test_a_worker_that_is_killed_leaves_no_folder_behind_though_nothing_comes_after_it(drill: Drill) -> None:
    with drill.run(arm := held(CrashPoint.BEFORE_COMMIT), restart_strategy="none") as job:
        os.kill(drill.await_arm(arm), signal.SIGKILL)
        assert job.wait() != 0
    assert list(drill.temporary.iterdir()) == []


def test_a_stopped_job_takes_a_last_checkpoint_and_the_same_command_goes_on(drill: Drill) -> None:
    with drill.run(arm := held(CrashPoint.AFTER_COMMITTED_SENT)) as first:
        drill.await_arm(arm)
        first.send(signal.SIGTERM)
        drill.release(arm)
        assert first.finish()["stopped"] is True
    with drill.run() as again:
        assert again.finish()["records_in"] != drill.records
    assert judge(drill) == []


def test_a_job_whose_checkpoints_were_deleted_still_ends_what_its_earlier_attempts_left_open(drill: Drill) -> None:
    for attempt in ("first", "second"):
        with drill.run(arm := held(CrashPoint.BEFORE_COMMIT, name=f"-{attempt}")) as killed:
            drill.await_arm(arm)
            killed.kill()
    # A worker ends with its driver, but a moment later, and may just be storing a snapshot.
    drill.await_true(lambda: not any(marked_processes(*drill.marker)), "a worker did not end with its driver")
    shutil.rmtree(drill.checkpoint_dir)
    with drill.run(restore_from="none") as last:
        last.finish()
    assert list(nothing_is_left(drill)) == []
