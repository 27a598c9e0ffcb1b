"""Collects what one step decides. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from coordinator.events import Decision, HangUp, Send, SessionId
from twopc.protocol.ids import AttemptId
from twopc.protocol.instant import Instant
from twopc.protocol.job_events import JobEvent, JobEventKind
from twopc.protocol.ledger_facts import Fact
from twopc.protocol.messages import ToSubtask


@dataclass(slots=True)
class Outbox:
    """The decision of one step, while it is being made at the moment `now`."""

    job: str
    attempt: AttemptId
    now: Instant
    events: list[JobEvent] = field(default_factory=list)
    messages: list[Send | HangUp] = field(default_factory=list)
    facts: list[Fact] = field(default_factory=list)

    def publish(self, kind: JobEventKind, **details: Any) -> JobEvent:
        """Tell drivers and views; `details` are fields of JobEvent."""
        event = JobEvent(kind=kind, job=self.job, attempt=self.attempt, time_ms=self.now.unix_ms, **details)
        self.events.append(event)
        return event

    def send(self, session: SessionId, message: ToSubtask) -> None:
        self.messages.append(Send(session, message))

    def send_all(self, sessions: Iterable[SessionId], message: ToSubtask) -> None:
        self.messages.extend(Send(session, message) for session in sessions)

    def hang_up(self, session: SessionId) -> None:
        self.messages.append(HangUp(session))

    def store(self, *facts: Fact) -> None:
        """Ask for these facts to be stored, in this order."""
        self.facts.extend(facts)

    def decision(self) -> Decision:
        return Decision(tuple(self.events), tuple(self.messages), tuple(self.facts))
