"""kill -9 of a real coordinator process at every one of its crash points: the job goes on, in the same attempt."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from tests.rpc.kit import JOB, SETTINGS, ScriptedSubtask, eventually, start_attempt
from twopc.checkpoints.catalog import read_job
from twopc.faults.points import VARIABLE, CrashPoint
from twopc.protocol.messages import FencedOff, Trigger
from twopc.protocol.requests import StopJob
from twopc.rpc.job_client import JobClient
from twopc.storage.local import LocalStore

pytestmark = pytest.mark.drill

POINTS = [
    CrashPoint.COORDINATOR_AFTER_RESERVE,
    CrashPoint.COORDINATOR_IN_ACKS,
    CrashPoint.COORDINATOR_AFTER_COMPLETION,
    CrashPoint.COORDINATOR_IN_PRUNE,
]
"""One of each kind; all of them are in the crash cells."""

COORDINATOR = (sys.executable, "-m", "twopc", "coordinator", "start")


@contextmanager
def coordinator(folder: Path, address: str, crash_point: str = "") -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Run `twopc coordinator start` until the end of the context; give it and the address that it printed."""
    command = [*COORDINATOR, "--checkpoint-dir", str(folder), "--address", address]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, env={**os.environ, VARIABLE: crash_point}
    ) as process:
        assert process.stdout is not None
        try:
            yield process, process.stdout.readline().strip()
        finally:
            process.kill()


@pytest.mark.proof
@pytest.mark.parametrize("point", POINTS, ids=lambda point: point.name.lower())
def test_the_job_goes_on_in_the_same_attempt_after_the_coordinator_was_killed(
    tmp_path: Path, point: CrashPoint
) -> None:
    once, folder = tmp_path / "once", tmp_path / "checkpoints"
    with ExitStack() as closing:
        # Pruning is not of one checkpoint.
        checkpoint = 0 if point is CrashPoint.COORDINATOR_IN_PRUNE else 3
        armed = f"{point.name},checkpoint={checkpoint},once={once}"
        first, address = closing.enter_context(coordinator(folder, "127.0.0.1:0", armed))
        client = JobClient(address)
        closing.callback(client.close)
        started = start_attempt(client, JOB, SETTINGS)
        running = [ScriptedSubtask(address, started.attempt, subtask) for subtask in (0, 1)]
        for subtask in running:
            closing.callback(subtask.close)
        assert first.wait(timeout=240) == -signal.SIGKILL
        assert once.exists()
        completed_before = [entry.checkpoint_id for entry in read_job(LocalStore(folder), JOB).completed]

        closing.enter_context(coordinator(folder, address, armed))
        eventually(lambda: all(subtask.completed() > 4 for subtask in running), "checkpoints complete again")
        client.ask(JOB, StopJob(started.attempt))
        eventually(lambda: all(subtask.ended for subtask in running), "the job finishes")

    for subtask in running:
        assert not any(isinstance(message, FencedOff) for message in subtask.heard)
        triggered = [message.checkpoint_id for message in subtask.heard if isinstance(message, Trigger)]
        assert triggered == sorted(set(triggered))
        assert subtask.completed() > max(completed_before)
    found = read_job(LocalStore(folder), JOB)
    assert found.attempt == started.attempt
    newest = found.completed[-1]
    assert newest.metadata is not None
    assert newest.metadata.kind == "final"
    assert newest.confirmed == {committable.name for committable in newest.metadata.committables}


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=["sigterm", "sigint"])
def test_a_signal_ends_the_coordinator_cleanly(tmp_path: Path, number: signal.Signals) -> None:
    with coordinator(tmp_path, "127.0.0.1:0") as (process, address):
        assert address.startswith("127.0.0.1:")
        process.send_signal(number)
        assert process.wait(timeout=240) == 0


def test_a_coordinator_says_as_json_where_it_is(tmp_path: Path) -> None:
    command = [*COORDINATOR, "--checkpoint-dir", str(tmp_path), "-o", "json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            ready = json.loads(process.stdout.readline())
            assert (ready["pid"], ready["checkpoint_dir"]) == (process.pid, str(tmp_path))
            client = JobClient(ready["address"])
            client.wait_ready(timeout=240)
            client.close()
        finally:
            process.terminate()


def test_a_wrong_address_is_one_line_and_a_failing_exit_code(tmp_path: Path) -> None:
    command = [*COORDINATOR, "--checkpoint-dir", str(tmp_path), "--address", "0.0.0.0:0"]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
    assert ended.returncode == 2
    assert ended.stderr.count("\n") == 1
    assert "--allow-insecure" in ended.stderr
