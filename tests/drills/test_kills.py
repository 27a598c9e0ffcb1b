"""kill -9 of driver or coordinator while a worker stands at each moment of a checkpoint, and of everything at once.

The same command goes on, and the output is exact. Whoever comes to a crash point itself dies there in `test_cells.py`.
"""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.drills.harness import Drill, crash_at
from twopc.crashpoints import CrashPoint
from twopc.testing.broker import Broker
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


@pytest.fixture
def drill(broker: Broker, tmp_path: Path, topic: Callable[[], str]) -> Drill:
    made = Drill(broker.bootstrap_servers, tmp_path, topic())
    made.load()
    return made


@contextmanager
def coordinator(drill: Drill, port: int, crash: str | None = None) -> Iterator[subprocess.Popen[bytes]]:
    """A coordinator in a process of its own, until the context ends."""
    command = [sys.executable, "-m", "coordinator", "--checkpoint-dir", str(drill.checkpoint_dir)]
    environment = os.environ | ({"TWOPC_CRASH_POINT": f"{crash},once={drill.once}"} if crash else {})
    process = subprocess.Popen([*command, "--address", f"127.0.0.1:{port}"], stdout=subprocess.PIPE, env=environment)
    try:
        assert process.stdout is not None
        assert process.stdout.readline()
        yield process
    finally:
        process.kill()
        process.communicate()


@each_moment
def test_the_driver_is_killed(drill: Drill, moment: CrashPoint) -> None:
    first = drill.start(crash_at(moment, hold=True))
    drill.wait_until_reached(first)
    first.kill()
    first.communicate()
    drill.finish(drill.start())
    drill.judge()


@each_moment
def test_the_coordinator_is_killed_and_the_job_goes_on_without_a_restart(drill: Drill, moment: CrashPoint) -> None:
    port = free_port()
    drill.environment["TWOPC_COORDINATOR"] = f"127.0.0.1:{port}"
    with coordinator(drill, port) as first:
        job = drill.start(crash_at(moment, hold=True))
        drill.wait_until_reached(job)
        first.kill()
        first.wait()
    with coordinator(drill, port):
        drill.release()
        report = drill.finish(job)
    assert report["attempts"] == 1
    drill.judge()


def test_everything_is_killed_at_once(drill: Drill) -> None:
    first = drill.start(crash_at(CrashPoint.BEFORE_COMMIT, hold=True))
    worker = drill.wait_until_reached(first)
    os.kill(worker, signal.SIGKILL)
    first.kill()
    first.communicate()
    drill.finish(drill.start())
    drill.judge()


def test_a_stopped_job_takes_a_last_checkpoint_and_the_same_command_goes_on(drill: Drill) -> None:
    first = drill.start(crash_at(CrashPoint.AFTER_COMMITTED_SENT, hold=True))
    drill.wait_until_reached(first)
    first.send_signal(signal.SIGTERM)
    drill.release()
    assert drill.finish(first)["stopped"] is True
    assert drill.finish(drill.start())["records_in"] != drill.records
    drill.judge()


def test_a_job_whose_checkpoints_were_deleted_still_ends_what_its_earlier_attempts_left_open(drill: Drill) -> None:
    for attempt in ("first", "second"):
        killed = drill.start(crash_at(CrashPoint.BEFORE_COMMIT, hold=True))
        drill.wait_until_reached(killed)
        killed.kill()
        killed.communicate()
        drill.once.rename(drill.folder / f"reached-{attempt}")
    shutil.rmtree(drill.checkpoint_dir)
    drill.finish(drill.start())
    drill.judge_transactions()
