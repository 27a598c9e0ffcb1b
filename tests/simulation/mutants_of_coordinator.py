"""Breaks of what a coordinator promises whoever listens: it is stored when it is told, and goes in its order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import coordinator.core
from coordinator.attempt import RunningAttempt
from coordinator.checkpoint import InFlight
from coordinator.commits import Confirmations
from coordinator.schedule import CheckpointTrigger, RequestQueue
from coordinator.status import Phase, phase_of
from tests.simulation.mutants import Mutant, Patch, instead
from tests.simulation.mutants_in_flight import ASKING, OVERLAPPING
from twopc.protocol.attempt_facts import AttemptEnded
from twopc.protocol.checkpoints import CheckpointKind
from twopc.protocol.ledger_facts import CheckpointReserved
from twopc.protocol.messages import Abort, Finish, ToSubtask, Trigger

_decide, _completed = RunningAttempt.decide, RunningAttempt.completed
_settle, _next_kind = Confirmations.settle, CheckpointTrigger._next_kind


def _told_first(fact: type, message: Callable[[Any], ToSubtask]) -> Patch:
    """Send what follows from a fact while it is only asked for."""

    def decide(attempt: Any, state: Any, out: Any) -> None:
        _decide(attempt, state, out)
        for each in out.facts:
            if isinstance(each, fact):
                attempt.send_all(message(each), out)

    return instead(RunningAttempt, "decide", decide)


def _trigger(fact: CheckpointReserved) -> ToSubtask:
    return Trigger(fact.checkpoint_id, final=fact.kind.ends_job)


def _enter_first(confirmations: Any, state: Any, out: Any) -> bool:
    """Tell of commits that are only asked to be stored."""
    to_store = _settle(confirmations, state, out)
    confirmations._enter(out)
    return to_store


def _abort_too(attempt: Any, fact: Any, out: Any) -> None:
    _completed(attempt, fact, out)
    attempt.send_all(Abort(fact.checkpoint_id, "by mistake"), out)


def _one_more(in_flight: Any, concurrent: int) -> bool:
    return len(in_flight) <= concurrent and not any(pending.exclusive for pending in in_flight.all)


def _beside_any(in_flight: Any, concurrent: int) -> bool:
    return len(in_flight) < concurrent


def _manual_first(requests: Any) -> Any:
    waiting = requests._manual or requests._savepoints
    return waiting[0] if waiting else None


def _periodic_first(trigger: Any, state: Any, all_at_end: bool) -> CheckpointKind:
    kind = _next_kind(trigger, state, all_at_end)
    return CheckpointKind.PERIODIC if kind is CheckpointKind.MANUAL else kind


def _attached_or_not(state: Any, running: Any) -> Phase:
    phase = phase_of(state, running)
    return Phase.RUNNING if phase is Phase.WAITING else phase


_ASKING_BESIDE = OVERLAPPING | ASKING
_SELDOM = ASKING | {"interval_ms": 400, "asked_every_ms": 60}

MUTANTS_OF_COORDINATOR = (
    Mutant("a trigger is sent before its id is stored", _told_first(CheckpointReserved, _trigger), seeds=100),
    Mutant("the end is told before it is stored", _told_first(AttemptEnded, lambda fact: Finish()), seeds=100),
    Mutant("a commit is told before it is stored", instead(Confirmations, "settle", _enter_first), seeds=100),
    Mutant("what has completed is told to be aborted", instead(RunningAttempt, "completed", _abort_too), seeds=100),
    Mutant(
        "one more checkpoint is in flight than is allowed", instead(InFlight, "has_room", _one_more), OVERLAPPING, 100
    ),
    Mutant(
        "a checkpoint is triggered beside one that must be alone",
        instead(InFlight, "has_room", _beside_any),
        _ASKING_BESIDE,
        500,
    ),
    Mutant(
        "a manual checkpoint goes before a savepoint", instead(RequestQueue, "first", property(_manual_first)), _SELDOM
    ),
    Mutant(
        "the periodic checkpoint goes before what people wait for",
        instead(CheckpointTrigger, "_next_kind", _periodic_first),
        ASKING,
        100,
    ),
    Mutant(
        "a job is said to run before its subtasks are attached",
        instead(coordinator.core, "phase_of", _attached_or_not),
        seeds=100,
    ),
)
