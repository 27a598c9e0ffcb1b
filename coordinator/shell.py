"""The shell around one job's core: stores what it asks for, publishes, sends, and reports back. One thread only.

Invariants:
- what depends on a fact is published and sent after the fact is durable, and never if storing it failed;
- nobody waits for a smaller ledger or a deleted checkpoint: both may take longer than to store a fact, and come after
  what was stored has been published and sent.
"""

from __future__ import annotations

import logging
from typing import Protocol

from coordinator.core import Core
from coordinator.events import Decision, Event, HangUp, LedgerLost, NotStored, SessionId, SnapshotMissing, Stored
from coordinator.ledger import Ledger, MissingSnapshot
from twopc import events
from twopc.clock import Clock
from twopc.errors import Fenced, ProtocolViolation
from twopc.faults.points import CrashPoint, reached
from twopc.protocol.attempt_facts import AttemptEnded, AttemptStarted
from twopc.protocol.facts import CheckpointMetadata
from twopc.protocol.ledger_facts import CheckpointCompleted, CheckpointReserved, Fact
from twopc.protocol.messages import Complete, ToSubtask, Trigger

_OF_AN_ATTEMPT = (AttemptStarted, AttemptEnded)

_BEFORE_STORING: dict[type[Fact], CrashPoint] = {
    CheckpointReserved: CrashPoint.COORDINATOR_BEFORE_RESERVE,
    CheckpointMetadata: CrashPoint.COORDINATOR_AFTER_ACKS,
}
_AFTER_STORING: dict[type[Fact], CrashPoint] = {
    CheckpointReserved: CrashPoint.COORDINATOR_AFTER_RESERVE,
    CheckpointMetadata: CrashPoint.COORDINATOR_AFTER_METADATA,
    CheckpointCompleted: CrashPoint.COORDINATOR_AFTER_COMPLETION,
}

log = logging.getLogger(__name__)


class DecisionSink(Protocol):
    """The receiver of messages and events; never blocks, never raises."""

    def send(self, session: SessionId, message: ToSubtask) -> None: ...

    def hang_up(self, session: SessionId) -> None: ...

    def publish(self, event: events.CoordinatorEvent) -> None: ...


class JobShell:
    """One loaded job: `core` decides, `ledger` holds what is durable."""

    def __init__(self, name: str, ledger: Ledger, clock: Clock, sink: DecisionSink) -> None:
        self.name = name
        self.ledger = ledger
        self.core = Core(name, ledger.state)
        self._clock = clock
        self._sink = sink

    def drive(self, event: Event) -> Event | None:
        """Step until nothing more has to be stored; return what became of the first facts, None if there were none."""
        outcome: Event | None = None
        following: Event | None = event
        while following is not None:
            decision = self.core.step(following, self._clock.now())
            self._emit(decision)
            if isinstance(following, Stored):
                self.compact(following.facts)
            following = self._store(decision.facts) if decision.facts else None
            outcome = outcome or following
        return outcome

    def compact(self, stored: tuple[Fact, ...]) -> None:
        """Sum up the ledger if it has become long, and delete what these facts forget."""
        try:
            self.ledger.compact()
        except Fenced as error:
            log.info("job %s: %s; whatever is to be stored next will be refused", self.name, error)
            return
        if any(getattr(fact, "forgotten", ()) for fact in stored):
            self._prune(stored)

    def _emit(self, decision: Decision) -> None:
        for event in decision.events:
            self._sink.publish(event)
            if isinstance(event, events.CheckpointAcknowledged) and not decision.facts:
                reached(CrashPoint.COORDINATOR_IN_ACKS, checkpoint=event.checkpoint_id)
        for number, message in enumerate(decision.messages, start=1):
            if isinstance(message, HangUp):
                self._sink.hang_up(message.session)
            else:
                self._sink.send(message.session, message.message)
                _after_sending(message.message, is_last=number == len(decision.messages))

    def _store(self, facts: tuple[Fact, ...]) -> Event:
        try:
            for fact in facts:
                _reach(_BEFORE_STORING, fact)
                self.ledger.store(fact)
                _reach(_AFTER_STORING, fact)
        except (Fenced, ProtocolViolation) as error:
            if isinstance(facts[-1], AttemptStarted):
                return NotStored(facts, str(error), superseded=True)
            log.error("job %s: %s", self.name, error)
            return LedgerLost(str(error))
        except MissingSnapshot as error:
            log.error("job %s: the snapshot of subtask %d is not seen: %s", self.name, error.subtask, error)
            return SnapshotMissing(facts, error.checkpoint_id, error.subtask, str(error))
        except OSError as error:
            reason = f"the coordinator could not store it: {error.strerror or type(error).__name__}"
            log.error("job %s: %s (%s)", self.name, reason, type(facts[-1]).__name__)
            return NotStored(facts, reason)
        if isinstance(facts[-1], _OF_AN_ATTEMPT):
            self._prune(facts)
        return Stored(facts, self.ledger.state)

    def _prune(self, stored: tuple[Fact, ...]) -> None:
        """Delete what is no longer kept, as far as that is possible now."""
        reached(CrashPoint.COORDINATOR_BEFORE_PRUNE, checkpoint=getattr(stored[-1], "checkpoint_id", 0))
        try:
            self.ledger.prune()
        except OSError as error:
            log.warning("job %s: old checkpoints could not be deleted: %s", self.name, error.strerror)


def _reach(points: dict[type[Fact], CrashPoint], fact: Fact) -> None:
    point = points.get(type(fact))
    if point is not None:
        reached(point, checkpoint=getattr(fact, "checkpoint_id", 0))


def _after_sending(message: ToSubtask, *, is_last: bool) -> None:
    """A message is on its way, the last of a decision or not; another may follow to another subtask."""
    match message:
        case Trigger():
            point = CrashPoint.COORDINATOR_AFTER_TRIGGERS if is_last else CrashPoint.COORDINATOR_IN_TRIGGERS
            reached(point, checkpoint=message.checkpoint_id)
        case Complete():
            point = CrashPoint.COORDINATOR_AFTER_NOTIFY if is_last else CrashPoint.COORDINATOR_IN_NOTIFY
            reached(point, checkpoint=message.checkpoint_id)
        case _:
            pass
