"""Where a job stands, put together for people. Pure."""

from __future__ import annotations

from coordinator.attempt import RunningAttempt
from coordinator.checkpoint import PendingCheckpoint
from coordinator.history import History
from coordinator.request_queue import Wanted
from twopc.protocol.completed import CompletedCheckpoint
from twopc.protocol.ids import CheckpointId, SubtaskIndex
from twopc.protocol.job_description import (
    CheckpointInFlight,
    JobDescription,
    KeptCheckpoint,
    QueuedRequest,
    SubtaskDescription,
)
from twopc.protocol.ledger_state import LedgerState


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
        queued=tuple(_queued(wanted) for wanted in running.requests.waiting) if running else (),
        kept=tuple(_kept(completed) for completed in state.completed),
        failures=tuple(history.failures),
        completed=history.completed,
        failed=history.failed,
    )


def _subtasks(running: RunningAttempt) -> tuple[SubtaskDescription, ...]:
    return tuple(
        running.membership.describe(index, running.confirmations.committed(SubtaskIndex(index)))
        for index in range(running.parallelism)
    )


def _in_flight(pending: PendingCheckpoint) -> CheckpointInFlight:
    wanted, triggered = pending.wanted, pending.triggered.unix_ms
    return CheckpointInFlight(
        pending.checkpoint_id, wanted.kind, wanted.label, wanted.request_id, triggered, pending.acknowledged
    )


def _queued(wanted: Wanted) -> QueuedRequest:
    return QueuedRequest(wanted.kind, wanted.label, wanted.request_id, wanted.asked.unix_ms)


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
    )
