"""Breaks of the global commit: of its order, its confirmation, and its being done again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import coordinator.jobs
import coordinator.schedule
import twopc.driver.recovery
from coordinator.ledger import Ledger
from coordinator.restore_plan import next_global_commit
from coordinator.retention import to_forget
from tests.simulation.mutants import Mutant, instead
from twopc.driver.actions import CommitGlobally
from twopc.protocol.attempts import GlobalCommit
from twopc.protocol.completed_checkpoint import CompletedCheckpoint
from twopc.protocol.ids import CheckpointId
from twopc.protocol.ledger_state import LedgerState
from twopc.protocol.requests import ConfirmCommittables, NextGlobalCommit
from twopc.sink import Outcome, Settled

_COMMITTING = {"commits_globally": True}
_BUSY = _COMMITTING | {
    "interval_ms": 100,
    "min_pause_ms": 0,
    "max_concurrent": 3,
    "fault_phase_ms": 3_000,
    "sizes": (8, 8),
    "kill_every_ms": 500,
}


def _confirm_first(action: CommitGlobally, edge: Any) -> None:
    job, attempt = action.context.job, action.context.attempt
    while (due := edge.coordinator.ask(job, NextGlobalCommit(attempt))) is not None:
        names = tuple(item.name for item in due.committables)
        edge.coordinator.ask(job, ConfirmCommittables(attempt, due.checkpoint_id, names))
        edge.sink.commit_globally(action.context, due)


def _of_this_attempt_only(ledger: Ledger) -> GlobalCommit | None:
    due = ledger.state.next_global_commit
    of_another = due is not None and due.record.attempt != ledger.state.current
    return None if of_another else next_global_commit(ledger)


def _newest_first(state: LedgerState) -> CompletedCheckpoint | None:
    return next((each for each in reversed(state.completed) if each.globally_outstanding), None)


def _none_of_the_last(state: LedgerState) -> CompletedCheckpoint | None:
    outstanding = (each for each in state.completed if each.globally_outstanding)
    return next((each for each in outstanding if each.checkpoint_id != state.final_completed), None)


def _confirm_what_is_settled(settled: Sequence[Settled], confirmed: frozenset[str]) -> tuple[str, ...]:
    return tuple(item.committable.name for item in settled if item.outcome is not Outcome.LOST)


def _forget_what_is_outstanding(completed: Any, retained: int, restored: CheckpointId) -> Any:
    plain = [replace(each, record=replace(each.record, global_committables=())) for each in completed]
    return to_forget(plain, retained, restored)


MUTANTS_OF_GLOBAL_COMMITS = (
    Mutant("a global commit is confirmed before it ran", instead(CommitGlobally, "carry_out", _confirm_first), _BUSY),
    Mutant(
        "a global commit is not repeated after a recovery",
        instead(coordinator.jobs, "next_global_commit", _of_this_attempt_only),
        _BUSY,
    ),
    Mutant(
        "global commits are out of order", instead(LedgerState, "next_global_commit", property(_newest_first)), _BUSY
    ),
    Mutant(
        "a job ends before its last global commit",
        instead(LedgerState, "next_global_commit", property(_none_of_the_last)),
        _COMMITTING,
    ),
    Mutant(
        "a recovery confirms what is to be committed globally",
        instead(twopc.driver.recovery, "_newly_confirmed", _confirm_what_is_settled),
        _BUSY,
    ),
    Mutant(
        "what a later checkpoint names again is committed globally again",
        instead(LedgerState, "_committed_globally", lambda state, fact: frozenset()),
        _BUSY,
    ),
    Mutant(
        "retention forgets what is to be committed globally",
        instead(coordinator.schedule, "to_forget", _forget_what_is_outstanding),
        _BUSY | {"retained": 1, "sizes": (2,)},
    ),
)
