"""The broker itself is killed or paused while a process of the job waits at a crash point; then all go on."""

from __future__ import annotations

import time
from dataclasses import dataclass

from tests.crash_cells.cells import CHECKPOINT, FALL, RECOVERY, VICTIM
from tests.crash_cells.rig import Rig
from tests.timed_faults import BROKER_ACTIONS, Action, bring_back, send_away
from twopc.faults.armed_faults import ArmedFault, ProcessAction
from twopc.faults.crash_table import CrashSite
from twopc.faults.points import CrashPoint
from twopc.testing.local_broker import LocalBroker

PAUSE_SECONDS = 2.5
"""Longer than the broker's session: it has been taken for dead when it wakes."""


@dataclass(frozen=True, slots=True)
class BrokerCell:
    """The state of the job when the broker goes, and how it goes; `str` is its sentence."""

    point: CrashPoint
    action: Action

    def __str__(self) -> str:
        return f"{self.action.value} the broker at {self.point.code}: {self.point.value.happened}"


BROKER_CELLS = tuple(
    BrokerCell(point, action)
    for point in (
        CrashPoint.BEFORE_PRE_COMMIT,
        CrashPoint.AFTER_PRE_COMMIT,
        CrashPoint.BEFORE_COMMIT,
        CrashPoint.AFTER_END_TXN,
        CrashPoint.DRIVER_IN_SETTLE,
    )
    for action in BROKER_ACTIONS
)


def play_broker(rig: Rig, cell: BrokerCell, broker: LocalBroker) -> None:
    """Run the drill's job through the cell, to its end; the broker is there again afterwards."""
    in_recovery = cell.point in RECOVERY
    hold = ArmedFault(
        cell.point,
        ProcessAction.HOLD,
        checkpoint=1 if in_recovery else CHECKPOINT,
        subtask=VICTIM if cell.point.where is CrashSite.SUBTASK else None,
    )
    with rig.driver(*((FALL,) if in_recovery else ()), hold) as driver:
        rig.await_arm(hold)
        [node] = broker.nodes
        send_away(node, cell.action)
        rig.release(hold)
        if cell.action is Action.PAUSE:
            time.sleep(PAUSE_SECONDS)
        bring_back(broker, node, cell.action)
        driver.finish()
