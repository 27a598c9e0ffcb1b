"""A worker is hit in a user's function; or while the job is drained, when what was open is told and not yet committed.

No line of ours is hit in a function, so the function says that its moment was reached.
"""

from __future__ import annotations

import signal
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from tests.crash_cells.cells import NUMBERS, Signal
from tests.crash_cells.every_operator import event_time
from tests.crash_cells.rig import RECORDS, Rig
from tests.crash_cells.scenes import outlive
from twopc.cli.coordinator_options import connect
from twopc.driver.discovery import find
from twopc.errors import ConfigurationError, Unavailable
from twopc.faults.armed_faults import ArmedFault
from twopc.faults.points import CrashPoint
from twopc.faults.process import ManagedProcess, is_stopped
from twopc.rpc.admin_client import AdminClient
from twopc.storage.local import LocalStore

_MIDDLE = RECORDS // 2
_BEHIND_ALL = max(map(event_time, range(RECORDS))) + 1
_NO_CHECKPOINTS = "10m"
"""So that those which a drain needs are the only ones, and no pace has to be kept."""


class Moment(Enum):
    """A moment as the function calls it, and the record or event time from which on it counts."""

    IN_A_CALL = "call", _MIDDLE
    BEHIND_KEY_BY = "behind key_by", _MIDDLE
    IN_A_TIMER = "timer", event_time(_MIDDLE)
    IN_A_DRAINED_TIMER = "timer", _BEHIND_ALL
    BEHIND_A_DRAINED_WINDOW = "final window", _BEHIND_ALL


@dataclass(frozen=True, slots=True)
class FunctionCell:
    """The function that is hit, and with what; `str` is its sentence."""

    moment: Moment
    signal: Signal

    def __str__(self) -> str:
        return f"{self.signal.value.value} {self.moment.name.lower().replace('_', ' ')}"

    @property
    def guards_a_change(self) -> bool:
        """A timer is called as a function is, and who is terminated or wakes in one ends as anywhere else."""
        return self.moment is Moment.IN_A_CALL and self.signal is Signal.KILL


FUNCTION_CELLS = (
    FunctionCell(Moment.IN_A_CALL, Signal.KILL),
    FunctionCell(Moment.IN_A_CALL, Signal.STOP),
    FunctionCell(Moment.BEHIND_KEY_BY, Signal.TERM),
    FunctionCell(Moment.IN_A_TIMER, Signal.KILL),
)
DRAINED_FUNCTION_CELLS = (
    FunctionCell(Moment.IN_A_DRAINED_TIMER, Signal.KILL),
    FunctionCell(Moment.BEHIND_A_DRAINED_WINDOW, Signal.TERM),
)

#: The first checkpoint of a drain has what came of it before key_by, and the second what came of that behind it.
DRAINED_ARMS = (
    ArmedFault(CrashPoint.BEFORE_COMMIT, checkpoint=1, subtask=0),
    ArmedFault(CrashPoint.AFTER_PRE_COMMIT, checkpoint=2, subtask=0),
)
FALLEN_DRAIN = ArmedFault(CrashPoint.COORDINATOR_AFTER_COMPLETION, checkpoint=1)


def hit_in_function(rig: Rig, cell: FunctionCell) -> None:
    """Run the job to its end; a worker is hit in a function on the way."""
    _arm(rig, cell)
    with rig.driver() as driver:
        if cell.signal is Signal.STOP:
            rig.await_true(lambda: _is_named(rig.struck), f"no function was hit: {cell}")
            pid = int(rig.struck.read_text())
            rig.await_true(lambda: is_stopped(pid), f"process {pid} did not stop")
            outlive(rig, pid)
        driver.finish()
    assert rig.struck.exists(), f"no function was hit: {cell}"


def _is_named(struck: Path) -> bool:
    """Whether the file is there, and the process that was hit is in it: it appears empty."""
    return struck.exists() and struck.read_text().endswith("\n")


def drain_hit_in_function(rig: Rig, cell: FunctionCell) -> None:
    """Drain the job; a worker is hit in a function that only a drain calls."""
    _arm(rig, cell)
    drain(rig)
    assert rig.struck.exists(), f"no function was hit: {cell}"


def drain(rig: Rig, *arms: ArmedFault) -> None:
    """Let the job read all that is there, and let time pass until nothing is open; workers are hit as armed."""
    _prepare_drain(rig)
    with rig.serve(*arms) as job:
        _ask(rig, job)
        job.finish()
    assert all(rig.has_happened(arm) for arm in arms)


def _prepare_drain(rig: Rig) -> None:
    rig.drained = True
    rig.environment["DRILL_PAUSE_SECONDS"] = "0"
    rig.settings["checkpoint_interval"] = _NO_CHECKPOINTS


def _ask(rig: Rig, job: ManagedProcess) -> None:
    """Ask the job to drain, when its subtasks run; return when it has, or its driver is gone."""

    def is_attached(admin: AdminClient) -> bool:
        subtasks = admin.subtasks(rig.job)
        return bool(subtasks) and all(each.attached for each in subtasks)

    def asked() -> bool:
        with suppress(ConfigurationError, Unavailable), connect(find(LocalStore(rig.checkpoint_dir), rig.job)) as admin:
            if is_attached(admin):
                with suppress(Unavailable):
                    admin.stop(rig.job, drain=True, timeout=rig.patience_seconds)
                return True
        assert job.exit_code is None, job.last_words()
        return False

    rig.await_true(asked, "the job does not run")


def _arm(rig: Rig, cell: FunctionCell) -> None:
    moment, first = cell.moment.value
    rig.environment |= {
        "DRILL_MOMENT": moment,
        "DRILL_MOMENT_FROM": str(first),
        "DRILL_SIGNAL": str(int(NUMBERS[cell.signal])),
        "DRILL_STRUCK": str(rig.struck),
    }


def drain_with_a_fallen_driver(rig: Rig) -> None:
    """Kill the driver when the first checkpoint of a drain is completed, and drain what is left by another one."""
    _prepare_drain(rig)
    with rig.serve(FALLEN_DRAIN) as job:
        _ask(rig, job)
        assert job.wait() == -signal.SIGKILL
    with rig.serve() as again:
        _ask(rig, again)
        again.finish()
