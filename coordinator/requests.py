"""The requests of a driver, and the fact that each leads to. Pure; refusals are exceptions that say what to do."""

from __future__ import annotations

from dataclasses import replace
from typing import assert_never

from coordinator.retention import needed_because
from twopc.errors import ConfigurationError, Fenced
from twopc.protocol.attempt_facts import AttemptEnded, AttemptStarted, StopRequested
from twopc.protocol.checkpoints import LATEST, NONE
from twopc.protocol.completed_checkpoint import CompletedCheckpoint
from twopc.protocol.ids import AttemptId, CheckpointId
from twopc.protocol.ledger_facts import CheckpointsDisposed, CommittablesConfirmed, Fact, LossSettled
from twopc.protocol.ledger_state import LedgerState
from twopc.protocol.planned_starts import StartsPlanned
from twopc.protocol.requests import (
    ConfirmCommittables,
    DisposeCheckpoint,
    EndAttempt,
    PlanStarts,
    SettleLoss,
    StartAttempt,
    StopJob,
)
from twopc.protocol.times import Instant


def fact_of_request(
    state: LedgerState,
    request: StartAttempt | ConfirmCommittables | SettleLoss | PlanStarts | StopJob | EndAttempt | DisposeCheckpoint,
    now: Instant,
) -> Fact | None:
    """Return the fact to store; None if it is stored already, or too late. Raises the reason for a refusal."""
    match request:
        case StartAttempt():
            return attempt_to_start(state, request, now)
        case ConfirmCommittables():
            return confirmation(state, request, now)
        case SettleLoss():
            return loss_settlement(state, request, now)
        case PlanStarts():
            return plan_to_store(state, request.planned)
        case StopJob():
            return stop_to_store(state, request)
        case DisposeCheckpoint():
            return disposal(state, request)
        case EndAttempt():
            current = state.attempt is not None and request.attempt == state.current and not state.ended
            return AttemptEnded(request.attempt, False, request.reason) if current else None
        case _:
            assert_never(request)


def check_attempt(state: LedgerState, attempt: AttemptId) -> None:
    """Raise Fenced unless this is the current attempt."""
    if state.attempt is None:
        raise Fenced(f"attempt {attempt} does not own the job: none was started yet")
    if attempt != state.current:
        raise Fenced(f"attempt {attempt} does not own the job: the coordinator's current attempt is {state.current}")


def checkpoint_to_restore(state: LedgerState, restore_from: str) -> CheckpointId:
    """Return the checkpoint that `restore_from` names, 0 for none; raise ConfigurationError if it is not there."""
    if restore_from == NONE:
        return CheckpointId(0)
    if restore_from == LATEST:
        return state.newest.checkpoint_id if state.newest else CheckpointId(0)
    known = ", ".join(str(checkpoint.checkpoint_id) for checkpoint in state.completed) or "none"
    found = state.find(CheckpointId(int(restore_from))) if restore_from.isdecimal() else None
    if found is None:
        raise ConfigurationError(
            f"--from {restore_from!r} can't be restored: give 'latest', 'none', or a completed checkpoint of "
            f"this job (there are: {known})"
        )
    return found.checkpoint_id


class Superseded(Fenced):
    """Another driver has taken the job over since: trying again would only fence that one."""


def refuse_superseded(state: LedgerState, request: StartAttempt) -> None:
    """Raise Superseded if the job has had a later attempt than the one that the driver starts again."""
    newest = max(state.current, request.traces.written)
    driver = state.attempt.driver if state.attempt is not None and newest == state.current else ""
    if request.restart_of and newest > request.restart_of:
        raise Superseded(
            f"attempt {request.restart_of} ended and is not started again: another run has taken the job over since, "
            f"as attempt {newest}{driver}"
        )


def refuse_unknown_past(state: LedgerState, request: StartAttempt) -> None:
    """Raise ConfigurationError if there were attempts that this ledger knows nothing of; who names a start knows it.

    A ledger without a past is let in where nothing of theirs is open: what they committed, the positions tell.
    """
    unknown = request.traces.written if state.current else request.traces.open
    if request.restore_from == LATEST and unknown > state.current:
        known = f"no later one than attempt {state.current}" if state.current else "none of its attempts"
        raise ConfigurationError(
            f"the brokers know attempt {unknown} of this job, but the checkpoint folder has {known}: the job ran "
            "with another checkpoint folder (a relative --checkpoint-dir depends on where a run is started), or this "
            "one was deleted, or another job uses the prefix of its transactional ids. To go on, name the "
            "--checkpoint-dir that it had, or start anew (--from none): with empty states, from where start= of the "
            "source says; what is read again, readers see twice"
        )


def attempt_to_start(state: LedgerState, request: StartAttempt, now: Instant) -> AttemptStarted:
    """The next attempt."""
    if request.parallelism < 1:
        raise ConfigurationError(f"parallelism must be at least 1, but is {request.parallelism}")
    return AttemptStarted(
        attempt=AttemptId(max(state.current, request.traces.newest) + 1),
        parallelism=request.parallelism,
        settings=request.settings,
        restored=checkpoint_to_restore(state, request.restore_from),
        started_ms=now.unix_ms,
        restart=request.restart,
        host=request.host,
        pid=request.pid,
    )


def stop_to_store(state: LedgerState, request: StopJob) -> StopRequested | None:
    """The stop, as a fact; None if it is on its way already, or there is nothing to stop.

    Whoever asks for less joins a stop that is on its way, and ends its draining; who asks for more is refused: the
    final checkpoint may be in flight.
    """
    check_attempt(state, request.attempt)
    wanted = StopRequested(request.attempt, request.savepoint, request.label, request.drain)
    present = state.stop
    if state.ended is not None:
        return None
    if present is None:
        return wanted
    if present.drain and not wanted.drain and not (wanted.savepoint and present.savepoint):
        savepoint = wanted.savepoint or present.savepoint
        return replace(wanted, savepoint=savepoint, label=wanted.label or present.label)
    if (wanted.savepoint and (not present.savepoint or wanted.label not in ("", present.label))) or (
        wanted.drain and not present.drain
    ):
        how = f"{' with a savepoint' if present.savepoint else ''}{' after draining' if present.drain else ''}"
        raise ConfigurationError(f"the job is stopping already{how}: that can't be turned into another kind of stop")
    return None


def disposal(state: LedgerState, request: DisposeCheckpoint) -> CheckpointsDisposed:
    """The disposal, as a fact; raise ConfigurationError if a restore may still need the checkpoint."""
    why = needed_because(state.completed, request.checkpoint_id, state.still_restored)
    if why:
        raise ConfigurationError(f"checkpoint {request.checkpoint_id} can't be disposed of: {why}")
    return CheckpointsDisposed((request.checkpoint_id,))


def confirmation(state: LedgerState, request: ConfirmCommittables, now: Instant) -> CommittablesConfirmed | None:
    """The confirmations that are news; None if all of them are stored already."""
    check_attempt(state, request.attempt)
    if not request.names:
        return None
    completed = state.find(request.checkpoint_id)
    if completed is None:
        raise ConfigurationError(f"checkpoint {request.checkpoint_id} can't be confirmed: it is not a completed one")
    names = tuple(sorted(completed.outstanding & frozenset(request.names)))
    fact = CommittablesConfirmed(request.checkpoint_id, names, confirmed_ms=now.unix_ms)
    state.check_confirmation(fact)
    return fact if names else None


def plan_to_store(state: LedgerState, planned: StartsPlanned) -> StartsPlanned | None:
    """Return the attempt's planned starts, as a fact; None if the same starts are stored already."""
    check_attempt(state, planned.attempt)
    known = state.planned
    return None if known is not None and replace(known, attempt=planned.attempt) == planned else planned


def loss_settlement(state: LedgerState, request: SettleLoss, now: Instant) -> LossSettled | None:
    """Return the decision about a loss, as a fact; None if it is stored already."""
    check_attempt(state, request.attempt)
    completed, names = state.find(request.checkpoint_id), frozenset(request.names)
    if completed is None or (completed is not state.newest and not _is_of_global_commit(completed, request)):
        raise ConfigurationError(
            f"no loss of checkpoint {request.checkpoint_id} can be settled: it is not the newest, and of an older one "
            "only what a global committer has still to commit can be given up"
        )
    loss = LossSettled(
        checkpoint_id=request.checkpoint_id,
        attempt=request.attempt,
        names=tuple(sorted(names)),
        bases=tuple(sorted(request.bases)),
        message=request.message,
        decided_ms=now.unix_ms,
    )
    if names and completed.may_settle(loss):
        if any(state.find(base) is None for _, base in request.bases):
            raise ConfigurationError("a loss can be written again only from a completed checkpoint that is kept")
        return loss
    if names and names <= completed.lost:
        return None
    raise ConfigurationError(
        f"a loss of checkpoint {request.checkpoint_id} names committables that are not outstanding"
    )


def _is_of_global_commit(completed: CompletedCheckpoint, request: SettleLoss) -> bool:
    """Whether this gives up what a global committer has, or had, still to commit; nothing is written again for it."""
    of_global = completed.globally_outstanding | (completed.lost & frozenset(completed.record.global_committables))
    return not request.bases and of_global.issuperset(request.names)
