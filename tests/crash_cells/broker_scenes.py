"""The broker itself is killed or paused while a process of the job waits at a crash point; then all go on."""

from __future__ import annotations

import os
import signal
import time
from dataclasses import dataclass

from tests.crash_cells.cells import CHECKPOINT, FALL, RECOVERY, VICTIM
from tests.crash_cells.rig import Rig
from tests.torture.plan import BrokerFate
from twopc.faults.armed import Act, ArmedFault
from twopc.faults.crash_table import Where
from twopc.faults.points import CrashPoint
from twopc.testing.local_broker import LocalBroker

PAUSE_SECONDS = 2.5
"""Longer than the broker's session: it has been taken for dead when it wakes."""


@dataclass(frozen=True, slots=True)
class BrokerCell:
    """Where the job stands when the broker goes, and how it goes; `str` is its sentence."""

    point: CrashPoint
    fate: BrokerFate

    def __str__(self) -> str:
        return f"the broker is {self.fate.value} at {self.point.code}: {self.point.value.happened}"


BROKER_CELLS = tuple(
    BrokerCell(point, fate)
    for point in (
        CrashPoint.BEFORE_PRE_COMMIT,
        CrashPoint.AFTER_PRE_COMMIT,
        CrashPoint.BEFORE_COMMIT,
        CrashPoint.AFTER_END_TXN,
        CrashPoint.DRIVER_IN_SETTLE,
    )
    for fate in BrokerFate
)


def play_broker(rig: Rig, cell: BrokerCell, broker: LocalBroker) -> None:
    """Run the drill's job through the cell, to its end; the broker is there again afterwards."""
    in_recovery = cell.point in RECOVERY
    hold = ArmedFault(
        cell.point,
        Act.HOLD,
        checkpoint=1 if in_recovery else CHECKPOINT,
        subtask=VICTIM if cell.point.where is Where.SUBTASK else None,
    )
    with rig.driver(*((FALL,) if in_recovery else ()), hold) as driver:
        rig.await_arm(hold)
        if cell.fate is BrokerFate.KILL:
            broker.kill()
            rig.release(hold)
            broker.start()
        else:
            node = broker.nodes[0].pid
            assert node is not None
            os.kill(node, signal.SIGSTOP)
            rig.release(hold)
            time.sleep(PAUSE_SECONDS)
            os.kill(node, signal.SIGCONT)
        driver.finish()
