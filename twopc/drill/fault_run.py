"""Runs the job of a fault drill to its end while the faults happen, each when a subtask stands at its step."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path

from twopc.drill.fault_checks import unexplained
from twopc.drill.fault_injector import FaultInjector
from twopc.drill.faults import Fault
from twopc.drill.supervisor import Supervisor

PATIENCE_SECONDS = 120.0
PATIENCE_A_FAULT_SECONDS = 30.0
_TURN_SECONDS = 0.02


def play(
    supervisor: Supervisor,
    faults: Sequence[Fault],
    injector: FaultInjector,
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
        while not _is_finished(supervisor) and not unexplained(supervisor) and time.monotonic() < limit:
            supervisor.keep_running()
            for fault in [each for each in left if _waits(each, supervisor.folder)]:
                if injector.inject(fault):
                    left.remove(fault)
            if not left:
                finish.touch()
            injector.undo()
            follow()
            time.sleep(_TURN_SECONDS)
    finally:
        injector.undo(everything=True)
    follow()
    return _is_finished(supervisor)


def _is_finished(supervisor: Supervisor) -> bool:
    return any(driver.has_finished_job for driver in supervisor.drivers)


def _waits(fault: Fault, folder: Path) -> bool:
    """Whether the fault's step was reached, and nothing was done about it yet."""
    return fault.arm.has_happened(folder) and not fault.arm.release(folder).exists()
