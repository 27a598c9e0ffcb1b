"""Transactions that the broker expired after their checkpoint had completed: written again, once each."""

from __future__ import annotations

import os
import signal
from dataclasses import replace

import psutil
import pytest

from tests.crash_cells.cells import held
from tests.crash_cells.judge import CHECKS, judge, positions_never_go_back
from tests.crash_cells.rig import Rig
from twopc.checkpoints.catalog import read_job
from twopc.faults.points import CrashPoint
from twopc.kafka.clients.control_client import ControlClient
from twopc.kafka.clients.described_transaction import BrokerState
from twopc.kafka.transactions.committable import PreparedTransaction
from twopc.protocol.ids import SubtaskIndex
from twopc.storage.local import LocalStore

pytestmark = [pytest.mark.drill, pytest.mark.proof, pytest.mark.timeout(720)]

SHORTEST = {
    "checkpoint_timeout": "1s",
    "checkpoint_tolerable_failures": "1000",
    "restart_attempts": "0",
    "transaction_timeout": "32s",
    "checkpoints_retained": "1000",
}
"""The shortest time-out that is not refused at the start, and every checkpoint kept for the verdict.

A slow machine may let any number of checkpoints expire before the one that counts.
"""


def test_a_subtask_whose_transaction_expired_writes_it_again(rig: Rig) -> None:
    rig.settings |= SHORTEST
    # Behind several: one of those before must have completed, or there is nothing to begin from.
    with rig.run(arm := replace(held(CrashPoint.BEFORE_COMMIT), checkpoint=8)) as process:
        rig.await_arm(arm)
        _kill_everything(process.pid)
        process.wait()
    completed = read_job(LocalStore(rig.checkpoint_dir), rig.job).completed[-1]
    assert completed.metadata is not None
    lost = completed.metadata.snapshots[0].committables[-1]
    _await_expiry(rig, PreparedTransaction.from_committable(lost).transactional_id)
    with rig.run() as again:
        again.finish()
    # Who writes a transaction again begins where it began.
    assert judge(rig, tuple(check for check in CHECKS if check is not positions_never_go_back)) == []
    [healed] = [each for each in read_job(LocalStore(rig.checkpoint_dir), rig.job).completed if each.losses]
    assert healed.checkpoint_id == completed.checkpoint_id
    assert lost.name in healed.losses[0].names
    assert dict(healed.losses[0].bases)[SubtaskIndex(0)] < completed.checkpoint_id


def _kill_everything(pid: int) -> None:
    """The driver, with the coordinator in it, and every worker, at once."""
    for process in (*psutil.Process(pid).children(recursive=True), psutil.Process(pid)):
        os.kill(process.pid, signal.SIGKILL)


def _await_expiry(rig: Rig, transactional_id: str) -> None:
    with ControlClient(rig.bootstrap_servers, {}) as client:

        def expired() -> bool:
            found = client.describe_transaction(transactional_id)
            return found is not None and found.described.state is BrokerState.COMPLETE_ABORT

        rig.await_true(expired, "the broker did not expire the transaction")
