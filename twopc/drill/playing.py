"""Runs the job of a fault drill to its end while the faults happen, each when a subtask stands at its step."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path

from twopc.drill.fault_judging import unexplained
from twopc.drill.faults import Fault
from twopc.drill.stage import Stage
from twopc.drill.strikes import Striker

PATIENCE_SECONDS = 120.0
PATIENCE_A_FAULT_SECONDS = 30.0
_TURN_SECONDS = 0.02


def play(
    stage: Stage,
    faults: Sequence[Fault],
    striker: Striker,
    finish: Path,
    follow: Callable[[], None],
    pace_seconds: float = 0.0,
) -> bool:
    """Return whether the job came to the end of its input; `finish` is the file that lets it read as fast as it can.

    Where a driver has ended in a way that no fault explains, it is over: the next would end in the same way. It should
    read for `pace_seconds`.
    """
    left = list(faults)
    limit = time.monotonic() + pace_seconds + PATIENCE_SECONDS + PATIENCE_A_FAULT_SECONDS * len(left)
    try:
        while not _is_finished(stage) and not unexplained(stage) and time.monotonic() < limit:
            stage.keep_running()
            for fault in [each for each in left if _waits(each, stage.folder)]:
                if striker.strike(fault):
                    left.remove(fault)
            if not left:
                finish.touch()
            striker.undo()
            follow()
            time.sleep(_TURN_SECONDS)
    finally:
        striker.undo(everything=True)
    follow()
    return _is_finished(stage)


def _is_finished(stage: Stage) -> bool:
    return any(driver.has_finished_job for driver in stage.drivers)


def _waits(fault: Fault, folder: Path) -> bool:
    """Whether the fault's step was reached, and nothing was done about it yet."""
    return fault.arm.has_happened(folder) and not fault.arm.release(folder).exists()
