"""Where a job stands. Pure.

Derived from what the ledger holds and what the running attempt knows, and kept nowhere.

    phase      goes to     when
    IDLE       WAITING     an attempt is started
    WAITING    RUNNING     all its subtasks are attached
    RUNNING    PENDING     a checkpoint is due and its id is stored: Trigger is sent
    PENDING    RUNNING     none is in flight any more: each has its completion record (Complete is sent), or is aborted
                           (Abort is sent), or subsumed by a later one that completed first
    PENDING    COMMITTING  the same, and the last was the final one
    COMMITTING ENDED       all subtasks have committed it, and that is stored: Finish is sent
    any        FAILED      a subtask failed, or too many checkpoints in a row: no more checkpoints in this attempt
    any        ENDED       the driver ended the attempt
    any        WAITING     the next attempt is started: FencedOff is sent to the subtasks of this one
    any        FENCED      another coordinator owns the ledger: for good
"""

from __future__ import annotations

from enum import Enum

from coordinator.attempt import RunningAttempt
from twopc.protocol.ledger_state import LedgerState


class Phase(Enum):
    """Where a job stands; the value is for people."""

    IDLE = "no attempt"
    WAITING = "waiting for subtasks"
    RUNNING = "running"
    PENDING = "checkpoint in flight"
    COMMITTING = "final checkpoint completed"
    FAILED = "failed"
    ENDED = "ended"
    FENCED = "fenced"


def phase_of(state: LedgerState, running: RunningAttempt | None) -> Phase:
    """The phase of a job whose ledger is this coordinator's."""
    if running is None:
        return Phase.IDLE
    if state.ended or running.failed:
        return Phase.ENDED if state.ended else Phase.FAILED
    if running.in_flight or state.final_completed:
        return Phase.PENDING if running.in_flight else Phase.COMMITTING
    return Phase.RUNNING if running.membership.all_attached else Phase.WAITING
