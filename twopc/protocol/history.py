"""The last checkpoints and attempts of a job, derived from the facts of its ledger: for people, never for a decision.

Pure. A summary of the ledger holds it, so it outlives the entries that it was derived from, and every coordinator.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from twopc.protocol.attempt_facts import AttemptEnded, AttemptStarted
from twopc.protocol.checkpoints import FailureReason
from twopc.protocol.ids import NO_CHECKPOINT
from twopc.protocol.ledger_facts import CheckpointCompleted, CheckpointReserved, Entry
from twopc.protocol.outcomes import (
    MESSAGE_MAX,
    AbortedCheckpoint,
    AttemptOutcome,
    CheckpointOutcome,
    PastAttempt,
    PastCheckpoint,
)

REMEMBERED = 100
"""How many checkpoints, and how many attempts, are remembered."""


@dataclass(frozen=True, slots=True)
class History:
    """Oldest first; at most `REMEMBERED` of each."""

    checkpoints: tuple[PastCheckpoint, ...] = ()
    attempts: tuple[PastAttempt, ...] = ()

    def after(self, fact: Entry) -> History:
        """Return what is remembered after one more fact."""
        match fact:
            case CheckpointReserved():
                begun = PastCheckpoint(fact.checkpoint_id, fact.attempt, fact.kind, fact.reserved_ms)
                checkpoints = (*_aborted(self.checkpoints, fact.aborted), begun)
                return History(checkpoints[-REMEMBERED:], self.attempts)
            case CheckpointCompleted():
                return History(_completed(self.checkpoints, fact), self.attempts)
            case AttemptStarted():
                checkpoints = _aborted(self.checkpoints, fact.aborted)
                # Of what nobody has said what became of it nothing more will be heard.
                checkpoints = _landed(checkpoints, CheckpointOutcome.NOT_KNOWN, fact.started_ms)
                begun_attempt = PastAttempt(fact.attempt, fact.parallelism, fact.restored, fact.started_ms)
                return History(checkpoints, (*_left(self.attempts, fact), begun_attempt)[-REMEMBERED:])
            case AttemptEnded():
                checkpoints = _aborted(self.checkpoints, fact.aborted)
                reason = FailureReason.CHECKPOINT_COORDINATOR_SHUTDOWN
                checkpoints = _landed(checkpoints, CheckpointOutcome.ABORTED, fact.ended_ms, reason)
                return History(checkpoints, _over(self.attempts, fact))
            case _:
                return self


def _aborted(
    checkpoints: tuple[PastCheckpoint, ...], aborted: Iterable[AbortedCheckpoint]
) -> tuple[PastCheckpoint, ...]:
    for checkpoint in aborted:
        found = next(
            (past for past in checkpoints if past.checkpoint_id == checkpoint.checkpoint_id != NO_CHECKPOINT), None
        )
        begun = found or PastCheckpoint(checkpoint.checkpoint_id, checkpoint.attempt, checkpoint.kind, 0)
        past = replace(
            begun,
            outcome=CheckpointOutcome.ABORTED,
            ended_ms=checkpoint.time_ms,
            label=checkpoint.label,
            reason=checkpoint.reason,
            message=checkpoint.message[:MESSAGE_MAX],
        )
        known = tuple(past if other is found else other for other in checkpoints)
        checkpoints = (*known, past) if found is None else known
    return checkpoints[-REMEMBERED:]


def _completed(checkpoints: tuple[PastCheckpoint, ...], fact: CheckpointCompleted) -> tuple[PastCheckpoint, ...]:
    return tuple(
        replace(
            past,
            outcome=CheckpointOutcome.COMPLETED,
            triggered_ms=fact.triggered_ms,
            ended_ms=fact.acknowledged_ms,
            label=fact.label,
            size_bytes=fact.size_bytes,
        )
        if past.checkpoint_id == fact.checkpoint_id
        else past
        for past in checkpoints
    )


def _landed(
    checkpoints: tuple[PastCheckpoint, ...],
    outcome: CheckpointOutcome,
    ended_ms: int,
    reason: FailureReason | None = None,
) -> tuple[PastCheckpoint, ...]:
    """Say what became of all that were in flight."""
    return tuple(
        replace(past, outcome=outcome, ended_ms=ended_ms, reason=reason)
        if past.outcome is CheckpointOutcome.IN_FLIGHT
        else past
        for past in checkpoints
    )


def _left(attempts: tuple[PastAttempt, ...], fact: AttemptStarted) -> tuple[PastAttempt, ...]:
    """Say how the attempt before this one ended, where no fact has."""
    if not attempts or attempts[-1].outcome is not AttemptOutcome.RUNNING:
        return attempts
    failure = fact.failure
    if failure is None:
        outcome = AttemptOutcome.STARTED_AGAIN if fact.restart else AttemptOutcome.TAKEN_OVER
        text = f"attempt {fact.attempt} was started{fact.driver}"
        last = replace(attempts[-1], outcome=outcome, ended_ms=fact.started_ms, reason=text)
    else:
        why = f"{failure.error_type}: {failure.message}"[:MESSAGE_MAX]
        last = replace(attempts[-1], outcome=AttemptOutcome.FAILED, ended_ms=failure.time_ms, reason=why)
    return (*attempts[:-1], last)


def _over(attempts: tuple[PastAttempt, ...], fact: AttemptEnded) -> tuple[PastAttempt, ...]:
    outcome = AttemptOutcome.FINISHED if fact.finished else AttemptOutcome.ENDED
    return tuple(
        replace(past, outcome=outcome, ended_ms=fact.ended_ms, reason=fact.reason[:MESSAGE_MAX])
        if past.attempt == fact.attempt
        else past
        for past in attempts
    )
