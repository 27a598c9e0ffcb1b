"""Which checkpoint is triggered next, and when. Pure.

    a savepoint > the final checkpoint > a manual one > the periodic one

What people ask for waits for room only: neither for the interval nor for the minimum pause. The final checkpoint is due
as soon as a stop is requested, or all subtasks are at the end of their input; a stop that drains waits for the latter.

An id must be durable before it is sent. Where the interval is short, one fact reserves the ids of a second's periodic
checkpoints; those that are left when the attempt or the coordinator ends, or when something else is due, are never
used, so that ids leave a gap.

Invariants: ids are used in ascending order, each once; one whose storing failed is never used, since whether it reached
the disk is unknown.

Where checkpoints are frequent, and one at a time, the next one is triggered ahead: its trigger says after how long it
is to be taken, and goes with the completion of the one before. It is in flight from then on, and what people ask for
waits for it as for any other.
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
from twopc.protocol.attempts import FREQUENT_MS
from twopc.protocol.checkpoints import CheckpointKind
from twopc.protocol.ids import NO_CHECKPOINT, CheckpointId
from twopc.protocol.instant import Instant
from twopc.protocol.ledger_facts import CheckpointReserved
from twopc.protocol.ledger_state import LedgerState

RESERVED_AHEAD_MS = 1_000
"""One fact reserves the ids of so long a time: to store one takes 1 of the 16 ms of CPU of a frequent checkpoint."""


@dataclass(frozen=True, slots=True)
class Due:
    """What is to be triggered now, under an id that is durable, and to be taken after so many milliseconds."""

    checkpoint_id: CheckpointId
    wanted: Wanted
    after_ms: int


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
        self._ahead = max(1, RESERVED_AHEAD_MS // started.settings.interval_ms)
        is_frequent = started.settings.interval_ms <= FREQUENT_MS and started.settings.concurrent == 1
        self._said_ahead_ms = started.settings.interval_ms if is_frequent else 0
        self._free = range(0)
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
                due = self._schedule.next_periodic()
                # After a failure nothing is said ahead: it would be repeated at once.
                return due if due is None or self._schedule.ended_badly else due - self._said_ahead_ms
            case _:
                return self._schedule.ready

    def take(self, state: LedgerState, now: Instant) -> Due | None:
        """Return what is due, if an id for it is durable already."""
        wanted = self._next(state, now)
        if not self._free or wanted.kind is not CheckpointKind.PERIODIC:
            return None
        checkpoint_id, self._free = CheckpointId(self._free[0]), self._free[1:]
        return self._due(checkpoint_id, wanted, now)

    def reserve(self, state: LedgerState, out: Outbox) -> None:
        """Ask for the id of what is due to be stored; a request waits in the queue until that is known."""
        wanted = self._next(state, out.now)
        first = CheckpointId(max(state.last_reserved, self._burnt) + 1)
        last = CheckpointId(first + self._ahead - 1) if wanted.kind is CheckpointKind.PERIODIC else first
        self._free, self._reserving = range(0), wanted
        forgotten = to_forget(state.completed, self._settings.retained, state.still_restored)
        out.store(CheckpointReserved(last, self._attempt, wanted.kind, forgotten, first))

    def reserved(self, fact: CheckpointReserved, now: Instant) -> Due:
        """The ids are durable: return what the first of them is for."""
        self._free = fact.ids[1:]
        return self._reserved_for(fact, now)

    def not_reserved(self, fact: CheckpointReserved, now: Instant) -> Due:
        """Storing the ids failed: return what the first was for."""
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
        return self._due(CheckpointId(fact.ids[0]), wanted, now)

    def _due(self, checkpoint_id: CheckpointId, wanted: Wanted, now: Instant) -> Due:
        due = self._schedule.next_periodic() if wanted.kind is CheckpointKind.PERIODIC else None
        return Due(checkpoint_id, wanted, 0 if due is None else max(0, due - now.monotonic_ms))
