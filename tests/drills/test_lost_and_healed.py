"""Transactions that the broker expired after their checkpoint had completed: written again, once each."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from tests.drills.harness import TIMEOUT_SECONDS, Drill, crash_at
from twopc.checkpoints import read_job
from twopc.crashpoints import CrashPoint
from twopc.kafka.committable import PreparedTransaction
from twopc.kafka.wire import ControlClient
from twopc.protocol.ids import SubtaskIndex
from twopc.protocol.recovery import BrokerState
from twopc.testing.broker import Broker

pytestmark = [pytest.mark.drill, pytest.mark.timeout(300)]

SHORTEST = {
    "TWOPC_CHECKPOINT_TIMEOUT": "1s",
    "TWOPC_RESTART_ATTEMPTS": "1",
    "TWOPC_TRANSACTION_TIMEOUT": "36s",
    "TWOPC_CHECKPOINTS_RETAINED": "1000",
}
"""The shortest time-out that is not refused at the start, and every checkpoint kept for the verdict."""


@pytest.fixture
def drill(broker: Broker, tmp_path: Path, topic: Callable[[], str]) -> Drill:
    made = Drill(broker.bootstrap_servers, tmp_path, topic(), environment=SHORTEST)
    made.load()
    return made


def test_a_subtask_whose_transaction_expired_writes_it_again(drill: Drill) -> None:
    process = drill.start(crash_at(CrashPoint.BEFORE_COMMIT, hold=True))
    drill.wait_until_reached(process)
    _kill_everything(process.pid)
    process.communicate()
    completed = read_job(drill.checkpoint_dir, drill.job).completed[-1]
    assert completed.metadata is not None
    lost = completed.metadata.snapshots[0].committables[-1]
    _await_expiry(drill, PreparedTransaction.from_committable(lost).transactional_id)
    drill.finish(drill.start())
    drill.judge()
    [healed] = [each for each in read_job(drill.checkpoint_dir, drill.job).completed if each.losses]
    assert healed.checkpoint_id == completed.checkpoint_id
    assert lost.name in healed.losses[0].names
    assert dict(healed.losses[0].bases)[SubtaskIndex(0)] < completed.checkpoint_id


def _kill_everything(pid: int) -> None:
    """The driver, with the coordinator in it, and every worker, at once."""
    for process in (*psutil.Process(pid).children(recursive=True), psutil.Process(pid)):
        os.kill(process.pid, signal.SIGKILL)


def _await_expiry(drill: Drill, transactional_id: str) -> None:
    with ControlClient(drill.bootstrap_servers, {}) as client:
        deadline = time.monotonic() + TIMEOUT_SECONDS
        while time.monotonic() < deadline:
            found = client.describe_transaction(transactional_id)
            if found is not None and found.described.state is BrokerState.COMPLETE_ABORT:
                return
            time.sleep(0.5)
    raise AssertionError("the broker never expired the transaction")
