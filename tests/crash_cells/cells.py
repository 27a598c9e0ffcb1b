"""Cells as data: which point, which signal, and what has to happen first so that the point is reached.

A cell says who is hit and where; `tests.crash_cells.scenes` knows how each kind of process is hit and replaced.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum

from twopc.faults.armed_faults import ArmedFault, ProcessAction
from twopc.faults.crash_table import CrashPoint, CrashSite

CHECKPOINT = 3
"""Where a cell strikes: some checkpoints are completed and committed by then, and some follow."""

VICTIM = 0
SIBLING = 1


class Signal(Enum):
    """The signal to the process; STOP is SIGSTOP until its successor has completed a checkpoint, then SIGCONT."""

    KILL = ProcessAction.KILL
    STOP = ProcessAction.STOP
    TERM = ProcessAction.TERM


NUMBERS = {Signal.KILL: signal.SIGKILL, Signal.STOP: signal.SIGSTOP, Signal.TERM: signal.SIGTERM}


@dataclass(frozen=True, slots=True)
class Cell:
    """One point, one signal, and whether the job does more than count; `str` is its sentence."""

    point: CrashPoint
    signal: Signal
    with_every_operator: bool = False

    def __str__(self) -> str:
        verb = {Signal.KILL: "killed", Signal.STOP: "stopped and woken late", Signal.TERM: "terminated"}[self.signal]
        job = " (every operator)" if self.with_every_operator else ""
        return f"{self.point.code}: {verb} when {self.point.value.happened}{job}"

    @property
    def guards_a_change(self) -> bool:
        """Whether every change plays it: a kill at each place, and the other signals where they meet what that doesn't.

        Who was stopped wakes beside a successor: that matters once the checkpoint is completed, for then both could
        commit it. Who is terminated still acts: that matters in a driver that has done half of what it does. What the
        job does matters where its state is stored, committed with its output, or restored.
        """
        if self.with_every_operator != (self.point in AT_STATE and _has_every_operator(self.point, self.signal)):
            return False
        if self.signal is Signal.STOP:
            return self.point in WOKEN
        return self.signal is Signal.KILL or self.point in HALF_DONE

    @property
    def arm(self) -> ArmedFault:
        """The strike itself."""
        return ArmedFault(self.point, self.signal.value, checkpoint=_AT.get(self.point, CHECKPOINT), subtask=self._who)

    @property
    def helpers(self) -> tuple[ArmedFault, ...]:
        """What is armed besides, in the same process."""
        return HELPERS.get(self.point, ())

    @property
    def _who(self) -> int | None:
        # Whether anything is under way when a flush begins is luck: whoever has it is hit.
        named = self.point.where is CrashSite.SUBTASK and self.point is not CrashPoint.IN_FLUSH
        return VICTIM if named else None


#: Recovery is of whatever was completed by then; pruning has nothing to do before some checkpoints are old.
_AT: Mapping[CrashPoint, int] = {
    CrashPoint.IN_FLUSH: 2,
    CrashPoint.COORDINATOR_BEFORE_PRUNE: 2,
    CrashPoint.COORDINATOR_IN_PRUNE: 0,
    CrashPoint.BEFORE_RESTORE: 1,
    CrashPoint.IN_RESTORE_AFTER_MANIFEST: 1,
    CrashPoint.IN_RESTORE: 1,
    CrashPoint.BEFORE_SEEK: 1,
    CrashPoint.DRIVER_BEFORE_SETTLE: 1,
    CrashPoint.DRIVER_IN_SETTLE: 1,
    CrashPoint.DRIVER_AFTER_SETTLE: 1,
    CrashPoint.DRIVER_AFTER_CONFIRM: 1,
    CrashPoint.DRIVER_IN_SWEEP: 0,
    CrashPoint.DRIVER_AFTER_ABORT_LINGERING: 1,
}

#: A process that dies at once takes with it what it has just queued: what is said to be sent needs a moment to go out.
_LET_OUT_MS = 50
#: One acknowledgement comes well after the other, or long after its checkpoint has expired.
_LATE_MS, EXPIRED_MS, TIMEOUT_MS = 150, 3_000, 2_000

HELPERS: Mapping[CrashPoint, tuple[ArmedFault, ...]] = {
    point: (ArmedFault(point, ProcessAction.PAUSE, checkpoint=CHECKPOINT, pause_ms=_LET_OUT_MS),)
    for point in (
        CrashPoint.COORDINATOR_IN_TRIGGERS,
        CrashPoint.COORDINATOR_AFTER_TRIGGERS,
        CrashPoint.COORDINATOR_IN_NOTIFY,
        CrashPoint.COORDINATOR_AFTER_NOTIFY,
    )
}

#: What is armed in the driver and its workers, where the cell strikes the coordinator or needs them to be slow.
WORKER_HELPERS: Mapping[CrashPoint, tuple[ArmedFault, ...]] = {
    CrashPoint.COORDINATOR_IN_ACKS: (
        ArmedFault(
            CrashPoint.AFTER_STORE, ProcessAction.PAUSE, checkpoint=CHECKPOINT, subtask=SIBLING, pause_ms=_LATE_MS
        ),
    ),
    # Two transactions are due at once only after a checkpoint that was aborted.
    CrashPoint.AFTER_END_TXN: (
        ArmedFault(
            CrashPoint.AFTER_STORE, ProcessAction.PAUSE, checkpoint=CHECKPOINT, subtask=SIBLING, pause_ms=EXPIRED_MS
        ),
    ),
}

#: What ends the attempt before, so that there is something to recover: a completed checkpoint, committed by nobody.
FALL = ArmedFault(CrashPoint.BEFORE_COMMIT, checkpoint=CHECKPOINT, name="-first")

RECOVERY = tuple(point for point in CrashPoint if point.code.startswith("R") and point is not CrashPoint.RECOVERY_AGAIN)
ON_THE_WIRE = (
    CrashPoint.END_TXN_REPLY_LOST,
    CrashPoint.END_TXN_NOT_APPLIED,
    CrashPoint.END_TXN_CONCURRENT,
)
#: The job of the cells has one sink; these places are reached with a second one, which has a global committer.
OF_OTHER_SINKS = frozenset(
    point for point in CrashPoint if point.in_global_commit or point is CrashPoint.BETWEEN_COMMITS
)
WOKEN = frozenset(
    {
        CrashPoint.COORDINATOR_AFTER_COMPLETION,
        CrashPoint.COORDINATOR_AFTER_NOTIFY,
        CrashPoint.BEFORE_COMMIT,
        CrashPoint.END_TXN_NOT_APPLIED,
        CrashPoint.AFTER_END_TXN,
        CrashPoint.AFTER_GLOBAL_COMMIT,
    }
)
"""Where a process of each kind that has slept could commit again: first and last, and between two commits."""

AT_STATE = frozenset(
    {
        CrashPoint.IN_STORE,
        CrashPoint.COORDINATOR_AFTER_METADATA,
        CrashPoint.BEFORE_COMMIT,
        CrashPoint.AFTER_END_TXN,
        CrashPoint.IN_RESTORE_AFTER_MANIFEST,
    }
)
"""Where the state of the job's operators is stored, completed, committed with what they made, or restored."""

HALF_DONE = frozenset({CrashPoint.DRIVER_IN_SETTLE, CrashPoint.DRIVER_AFTER_SETTLE, CrashPoint.AFTER_GLOBAL_COMMIT})
"""Where the driver has settled, or committed globally, and nobody has been told."""


def _has_every_operator(point: CrashPoint, signal: Signal) -> bool:
    """At each place under one of the signals, as many under each."""
    place = tuple(CrashPoint).index(point)
    return point not in OF_OTHER_SINKS and tuple(Signal)[place % len(Signal)] is signal


def _cells(point: CrashPoint, signal: Signal) -> Iterator[Cell]:
    plain = Cell(point, signal)
    if _has_every_operator(point, signal):
        yield Cell(point, signal, with_every_operator=True)
        if not plain.guards_a_change:
            return
    yield plain


#: Each place under each signal; under one of them with a job that does more than count, whatever guards a change.
CELLS = tuple(cell for point in CrashPoint for signal in Signal for cell in _cells(point, signal))

#: Where it matters to a kill whether a subtask's state is in files, or in the acknowledgement and the metadata.
OF_SMALL_STATE = tuple(
    Cell(point, Signal.KILL)
    for point in (
        CrashPoint.BEFORE_SNAPSHOT,
        CrashPoint.AFTER_STORE,
        CrashPoint.AFTER_ACK,
        CrashPoint.COORDINATOR_IN_ACKS,
        CrashPoint.COORDINATOR_METADATA_UNNAMED,
        CrashPoint.COORDINATOR_AFTER_METADATA,
        CrashPoint.COORDINATOR_AFTER_COMPLETION,
        CrashPoint.COORDINATOR_IN_PRUNE,
        CrashPoint.BEFORE_COMMIT,
        CrashPoint.BEFORE_SEEK,
    )
)

#: Recovery that crashes in recovery, and again: one driver after the other falls, each a step further.
THREE_DEEP = (CrashPoint.DRIVER_BEFORE_SETTLE, CrashPoint.DRIVER_AFTER_SETTLE, CrashPoint.DRIVER_IN_SWEEP)


def held(point: CrashPoint, *, name: str = "") -> ArmedFault:
    """The victim waits at this point until it is let go: time to do to others what is to be done."""
    return ArmedFault(point, ProcessAction.HOLD, checkpoint=CHECKPOINT, subtask=VICTIM, name=name)
