"""The status of a job: its phase, and its description for people. Pure.

The phase is derived from what the ledger holds and what the running attempt knows, and kept nowhere. `PHASE_CHANGES`
says which may follow which; the simulation (`tests/simulation`) holds the code to it.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from coordinator.attempt import RunningAttempt
from coordinator.checkpoint import CheckpointRequest, PendingCheckpoint
from coordinator.failures import History
from twopc.protocol.completed_checkpoint import CompletedCheckpoint
from twopc.protocol.ids import CheckpointId, SubtaskIndex
from twopc.protocol.job_description import (
    CheckpointInFlight,
    JobDescription,
    KeptCheckpoint,
    QueuedRequest,
    SubtaskDescription,
)
from twopc.protocol.ledger_state import LedgerState


class Phase(Enum):
    """The phase of a job; the value is for people."""

    IDLE = "no attempt"
    WAITING = "waiting for subtasks"
    RUNNING = "running"
    PENDING = "checkpoint in flight"
    COMMITTING = "final checkpoint completed"
    FAILED = "failed"
    ENDED = "ended"
    FENCED = "fenced"


@dataclass(frozen=True, slots=True)
class PhaseChange:
    """A step from one phase to another, and what leads to it."""

    before: Phase
    after: Phase
    when: str


_ALL_OVER = "the driver ended the attempt"
_FAILURE = "a subtask failed, or too many checkpoints in a row: no more checkpoints in this attempt"
_NEXT = "the next attempt is started: `FencedOff` is sent to the subtasks of this one"
_LOST = "another coordinator owns the ledger: for good"
_DETACHED = "a stream ended"

PHASE_CHANGES = (
    PhaseChange(Phase.IDLE, Phase.WAITING, "an attempt is started"),
    PhaseChange(Phase.WAITING, Phase.RUNNING, "all its subtasks are attached"),
    PhaseChange(Phase.RUNNING, Phase.WAITING, _DETACHED),
    PhaseChange(Phase.RUNNING, Phase.PENDING, "a checkpoint is due and its id is stored: `Trigger` is sent"),
    PhaseChange(Phase.PENDING, Phase.RUNNING, "none is in flight any more, and all subtasks are attached"),
    PhaseChange(Phase.PENDING, Phase.WAITING, "none is in flight any more, and a subtask is not attached"),
    PhaseChange(Phase.PENDING, Phase.COMMITTING, "the final one completed"),
    PhaseChange(
        Phase.COMMITTING,
        Phase.ENDED,
        "all of it is committed, by subtasks and globally, and that is stored: `Finish` is sent",
    ),
    *(PhaseChange(phase, Phase.FAILED, _FAILURE) for phase in (Phase.WAITING, Phase.RUNNING, Phase.PENDING)),
    PhaseChange(Phase.COMMITTING, Phase.FAILED, "a subtask failed before its commit was stored: the next one settles"),
    *(
        PhaseChange(phase, Phase.ENDED, _ALL_OVER)
        for phase in (Phase.WAITING, Phase.RUNNING, Phase.PENDING, Phase.FAILED)
    ),
    *(PhaseChange(phase, Phase.WAITING, _NEXT) for phase in (Phase.COMMITTING, Phase.FAILED, Phase.ENDED)),
    *(PhaseChange(phase, Phase.FENCED, _LOST) for phase in Phase if phase is not Phase.FENCED),
)


def phase_of(state: LedgerState, running: RunningAttempt | None) -> Phase:
    """The phase of a job whose ledger is this coordinator's."""
    if running is None:
        return Phase.IDLE
    if state.ended or running.failed:
        return Phase.ENDED if state.ended else Phase.FAILED
    if running.in_flight or state.final_completed:
        return Phase.PENDING if running.in_flight else Phase.COMMITTING
    return Phase.RUNNING if running.membership.all_attached else Phase.WAITING


def describe(
    job: str, phase: str, problem: str, state: LedgerState, running: RunningAttempt | None, history: History
) -> JobDescription:
    """Put together what ledger, attempt and history say."""
    started = state.attempt
    return JobDescription(
        job=job,
        phase=phase,
        problem=problem,
        attempt=state.current,
        parallelism=started.parallelism if started else 0,
        settings=started.settings if started else None,
        restored=started.restored if started else CheckpointId(0),
        started_ms=started.started_ms if started else 0,
        stop_requested=state.stop_requested,
        subtasks=_subtasks(running) if running else (),
        in_flight=tuple(_in_flight(pending) for pending in running.in_flight.all) if running else (),
        queued=tuple(_queued(request) for request in running.requests.waiting) if running else (),
        kept=tuple(_kept(completed) for completed in state.completed),
        failures=tuple(history.failures),
        completed=history.completed,
        failed=history.failed,
        input_notes=running.input_notes if running else (),
    )


def _subtasks(running: RunningAttempt) -> tuple[SubtaskDescription, ...]:
    return tuple(
        running.membership.describe(index, running.confirmations.committed(SubtaskIndex(index)))
        for index in range(running.parallelism)
    )


def _in_flight(pending: PendingCheckpoint) -> CheckpointInFlight:
    request, triggered = pending.request, pending.triggered.unix_ms
    return CheckpointInFlight(
        pending.checkpoint_id, request.kind, request.label, request.request_id, triggered, pending.acknowledged
    )


def _queued(request: CheckpointRequest) -> QueuedRequest:
    return QueuedRequest(request.kind, request.label, request.request_id, request.since.unix_ms)


def _kept(completed: CompletedCheckpoint) -> KeptCheckpoint:
    record = completed.record
    return KeptCheckpoint(
        checkpoint_id=record.checkpoint_id,
        attempt=record.attempt,
        kind=record.kind,
        label=record.label,
        triggered_ms=record.triggered_ms,
        completed_ms=record.acknowledged_ms,
        size_bytes=record.size_bytes,
        outstanding=tuple(sorted(completed.outstanding)),
        globally_outstanding=tuple(sorted(completed.globally_outstanding)),
    )
