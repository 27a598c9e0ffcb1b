"""Which checkpoint is triggered next, and when. Pure.

    a savepoint > the final checkpoint > a manual one > the periodic one

What people ask for waits for room only: neither for the interval nor for the minimum pause. The final checkpoint is due
as soon as a stop is requested, or all subtasks are at the end of their input; a stop that drains waits for the latter.

Invariants: an id is durable before it is sent; ids are used in ascending order, each once; one whose storing failed is
never used, since whether it reached the disk is unknown.
"""

from __future__ import annotations

from dataclasses import dataclass

from coordinator.in_flight import InFlight
from coordinator.membership import Membership
from coordinator.outbox import Outbox
from coordinator.request_queue import RequestQueue, Wanted
from coordinator.retention import to_forget
from coordinator.schedule import Schedule
from twopc.protocol.attempt_facts import AttemptStarted
from twopc.protocol.checkpoints import CheckpointKind
from twopc.protocol.ids import NO_CHECKPOINT, CheckpointId
from twopc.protocol.instant import Instant
from twopc.protocol.ledger_facts import CheckpointReserved
from twopc.protocol.ledger_state import LedgerState


@dataclass(frozen=True, slots=True)
class Due:
    """What is to be triggered now, under an id that is durable."""

    checkpoint_id: CheckpointId
    wanted: Wanted


class Triggering:
    """Reserves ids for what is due, while there is room."""

    def __init__(
        self, started: AttemptStarted, schedule: Schedule, in_flight: InFlight, membership: Membership
    ) -> None:
        self.requests = RequestQueue()
        self._attempt = started.attempt
        self._settings = started.settings
        self._schedule = schedule
        self._in_flight = in_flight
        self._membership = membership
        self._reserving: Wanted | None = None
        self._burnt = NO_CHECKPOINT

    def due(self, state: LedgerState) -> int | None:
        """When the next checkpoint is to be triggered; None while there is no room, or not all are attached."""
        if not self._membership.all_attached or state.final_completed:
            return None
        if not self._in_flight.has_room(self._settings.concurrent):
            return None
        match self._next_kind(state):
            case CheckpointKind.FINAL | CheckpointKind.FINAL_SAVEPOINT:
                return self._schedule.next_final()
            case CheckpointKind.PERIODIC:
                return self._schedule.next_periodic()
            case _:
                return self._schedule.ready

    def reserve(self, state: LedgerState, out: Outbox) -> None:
        """Ask for the id of what is due to be stored; a request waits in the queue until that is known."""
        wanted = self._next(state, out.now)
        checkpoint_id = CheckpointId(max(state.last_reserved, self._burnt) + 1)
        self._reserving = wanted
        forgotten = to_forget(state.completed, self._settings.retained, state.still_restored)
        out.store(CheckpointReserved(checkpoint_id, self._attempt, wanted.kind, forgotten))

    def reserved(self, fact: CheckpointReserved, now: Instant) -> Due:
        """The id is durable: return what it is for."""
        return self._reserved_for(fact, now)

    def not_reserved(self, fact: CheckpointReserved, now: Instant) -> Due:
        """Storing the id failed: return what it was for."""
        self._burnt = fact.checkpoint_id
        return self._reserved_for(fact, now)

    def _next_kind(self, state: LedgerState) -> CheckpointKind:
        asked = self.requests.first
        if asked is not None and asked.kind is CheckpointKind.SAVEPOINT:
            return asked.kind
        stop = state.stop
        if self._membership.all_at_end or (stop is not None and not stop.drain):
            return CheckpointKind.FINAL_SAVEPOINT if stop is not None and stop.savepoint else CheckpointKind.FINAL
        return CheckpointKind.PERIODIC if asked is None else asked.kind

    def _next(self, state: LedgerState, now: Instant) -> Wanted:
        kind, asked = self._next_kind(state), self.requests.first
        if asked is not None and asked.kind is kind:
            return asked
        return Wanted(kind, now, state.stop.label if state.stop is not None and kind.ends_job else "")

    def _reserved_for(self, fact: CheckpointReserved, now: Instant) -> Due:
        wanted, self._reserving = self._reserving or Wanted(fact.kind, now), None
        if wanted.request_id:
            self.requests.remove(wanted)
        return Due(fact.checkpoint_id, wanted)
