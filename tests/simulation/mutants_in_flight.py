"""Breaks of what holds for several checkpoints in flight, for what people ask for, and for what is kept."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any
from unittest.mock import patch

import coordinator.requests
import coordinator.schedule
import twopc.protocol.ledger_state
from coordinator.attempt import RunningAttempt
from coordinator.checkpoint import InFlight
from coordinator.core import Core
from coordinator.failures import Failures
from coordinator.requests import stop_to_store
from coordinator.retention import to_forget
from coordinator.schedule import CheckpointTrigger
from coordinator.silence import Absences, Silences
from tests.simulation.mutants import Mutant
from twopc.kafka.transactions.slots import SlotPool
from twopc.protocol.checkpoints import CheckpointKind
from twopc.protocol.ids import CheckpointId
from twopc.protocol.ledger_state import LedgerState
from twopc.protocol.messages import Ack
from twopc.protocol.requests import StopJob
from twopc.protocol.subtask_state import CommitPending, SubtaskState

_on = SubtaskState.on
_on_ack = RunningAttempt._on_ack


def _commit_everything_pending(state: SubtaskState, message: Any) -> Any:
    action = _on(state, message)
    return replace(action, due=tuple(state._pending)) if isinstance(action, CommitPending) else action


def _acknowledge_the_newest(attempt: Any, member: Any, ack: Ack, state: Any, out: Any) -> None:
    newest = attempt.in_flight.all[-1].checkpoint_id if attempt.in_flight.all else ack.checkpoint_id
    _on_ack(attempt, member, replace(ack, checkpoint_id=newest), state, out)


def _forget_savepoints_too(completed: Any, retained: int, restored: CheckpointId) -> Any:
    ordinary = [replace(each, record=replace(each.record, kind=CheckpointKind.PERIODIC)) for each in completed]
    return to_forget(ordinary, retained, restored)


def _forget_what_is_taken(pool: Any, checkpoint: CheckpointId) -> None:
    pool._last_taken = CheckpointId(0)


def _stop_at_once(state: LedgerState, request: StopJob) -> Any:
    return stop_to_store(state, replace(request, drain=False))


@contextmanager
def _earlier_completes_after_later() -> Iterator[None]:
    def newest_whole(in_flight: Any) -> Any:
        return next((pending for pending in reversed(in_flight.all) if pending.whole), None)

    with (
        patch.object(InFlight, "whole", newest_whole),
        patch.object(InFlight, "before", lambda in_flight, checkpoint_id: ()),
        patch.object(LedgerState, "_check_completion", lambda state, fact: None),
    ):
        yield


OVERLAPPING = {
    "max_concurrent": 3,
    "min_pause_ms": 0,
    "interval_ms": 100,
    "network_delay_ms": 300,
    "fault_phase_ms": 5_000,
}
CUT_OFF = {"cut_off_every_ms": 300, "embedded": True, "fault_phase_ms": 2_000, "tolerable_failures": 3}
ASKING = {"asked_every_ms": 100, "retained": 1, "fault_phase_ms": 2_500}


@contextmanager
def _ids_used_again() -> Iterator[None]:
    """Number checkpoints after the newest completed one; neither the ledger nor a comparison of attempts hides it."""
    reserve = CheckpointTrigger.reserve

    def numbered_anew(triggering: Any, state: LedgerState, *arguments: Any) -> None:
        triggering._burnt = CheckpointId(0)
        newest = state.newest.checkpoint_id if state.newest else CheckpointId(0)
        reserve(triggering, replace(state, last_reserved=newest), *arguments)

    with (
        patch.object(CheckpointTrigger, "reserve", numbered_anew),
        patch.object(twopc.protocol.ledger_state, "_require", lambda holds, what: None),
        patch.object(Core, "_refused", lambda core, event, out: False),
    ):
        yield


MUTANTS_IN_FLIGHT = (
    Mutant(
        "a subtask that is silent is waited for",
        partial(patch.object, Silences, "complaint", lambda silences, now: None),
        CUT_OFF,
    ),
    Mutant(
        "a subtask that does not come back to a new coordinator is waited for",
        partial(patch.object, Absences, "complaint", lambda absences, now: None),
        CUT_OFF | {"embedded": False, "second_coordinator_every_ms": 300},
    ),
    Mutant("checkpoint ids are used again and no attempt is compared", _ids_used_again),
    Mutant(
        "what may be needed can be disposed of",
        partial(patch.object, coordinator.requests, "needed_because", lambda *ignored: ""),
        ASKING,
    ),
    Mutant(
        "a job that is to drain is stopped at once",
        partial(patch.object, coordinator.requests, "stop_to_store", _stop_at_once),
        ASKING,
    ),
    Mutant(
        "a completion commits what later checkpoints have pre-committed",
        partial(patch.object, SubtaskState, "on", _commit_everything_pending),
        OVERLAPPING,
    ),
    Mutant(
        "an acknowledgement counts for the newest checkpoint in flight",
        partial(patch.object, RunningAttempt, "_on_ack", _acknowledge_the_newest),
        OVERLAPPING,
    ),
    Mutant("an earlier checkpoint completes after a later one", _earlier_completes_after_later, OVERLAPPING),
    Mutant(
        "a slot is used again while a checkpoint in flight carries it",
        partial(patch.object, SlotPool, "taken", _forget_what_is_taken),
        OVERLAPPING | {"end_txn_late": 0.3},
    ),
    Mutant(
        "retention keeps the newest only",
        partial(
            patch.object,
            coordinator.schedule,
            "to_forget",
            lambda done, kept, restored: tuple(each.checkpoint_id for each in done[:-1]),
        ),
    ),
    Mutant(
        "retention forgets savepoints",
        partial(patch.object, coordinator.schedule, "to_forget", _forget_savepoints_too),
        ASKING,
    ),
    Mutant(
        "whoever waits for a checkpoint is forgotten",
        partial(patch.object, Failures, "refuse_requests", lambda failures, reason, message, out: None),
        ASKING,
    ),
)
