"""The events that the core takes in, and its decisions, as frozen values. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Concatenate, NewType, ParamSpec, TypeVar

from twopc import events
from twopc.protocol.ids import AttemptId, CheckpointId, SubtaskIndex
from twopc.protocol.ledger_facts import Fact
from twopc.protocol.ledger_state import LedgerState
from twopc.protocol.messages import ToCoordinator, ToSubtask
from twopc.protocol.requests import Command
from twopc.protocol.times import Instant

E = TypeVar("E", bound=events.CoordinatorEvent)
Details = ParamSpec("Details")

SessionId = NewType("SessionId", int)
"""One stream of one subtask; a stream that is opened again is another session."""


@dataclass(frozen=True, slots=True)
class Attached:
    """A subtask has opened a stream. Process id and host tell a stream opened again from a second process.

    `heartbeat_timeout_ms` is for how long it may be silent once its stream is gone; 0 for any time.
    """

    session: SessionId
    attempt: AttemptId
    subtask: SubtaskIndex
    last_checkpoint_id: CheckpointId
    end_of_input: bool
    pid: int
    host: str
    heartbeat_timeout_ms: int = 0


@dataclass(frozen=True, slots=True)
class Detached:
    """A stream has ended or broken."""

    session: SessionId


@dataclass(frozen=True, slots=True)
class MessageReceived:
    """A subtask has sent this."""

    session: SessionId
    message: ToCoordinator


@dataclass(frozen=True, slots=True)
class Tick:
    """Time has passed."""


@dataclass(frozen=True, slots=True)
class EventBatch:
    """These arrived while the core was busy; what they lead to is decided once."""

    events: tuple[Detached | MessageReceived, ...]


@dataclass(frozen=True, slots=True)
class Stored:
    """The facts of the last decision are durable; `state` is what the ledger holds with them."""

    facts: tuple[Fact, ...]
    state: LedgerState


@dataclass(frozen=True, slots=True)
class NotStored:
    """Storing the facts of the last decision failed. `superseded`: only because another coordinator was quicker."""

    facts: tuple[Fact, ...]
    reason: str
    superseded: bool = False


@dataclass(frozen=True, slots=True)
class SnapshotMissing:
    """Nothing of the last decision was stored: a subtask's snapshot is not there where the coordinator reads."""

    facts: tuple[Fact, ...]
    checkpoint_id: CheckpointId
    subtask: SubtaskIndex
    what: str


@dataclass(frozen=True, slots=True)
class LedgerLost:
    """Another coordinator owns the ledger."""

    reason: str


Event = (
    Command
    | Attached
    | Detached
    | MessageReceived
    | Tick
    | EventBatch
    | Stored
    | NotStored
    | SnapshotMissing
    | LedgerLost
)


@dataclass(frozen=True, slots=True)
class Send:
    """Send this to a subtask."""

    session: SessionId
    message: ToSubtask


@dataclass(frozen=True, slots=True)
class HangUp:
    """End this stream."""

    session: SessionId


@dataclass(frozen=True, slots=True)
class Decision:
    """The decision, in this order: publish the events, send the messages, store the facts, and report back.

    What depends on a fact is in the decision that answers `Stored`, so nothing can be sent before it is durable.
    """

    events: tuple[events.CoordinatorEvent, ...] = ()
    messages: tuple[Send | HangUp, ...] = ()
    facts: tuple[Fact, ...] = ()


@dataclass(slots=True)
class DecisionBuilder:
    """The decision of one step, while it is being made at the moment `now`."""

    job: str
    attempt: AttemptId
    now: Instant
    events: list[events.CoordinatorEvent] = field(default_factory=list)
    messages: list[Send | HangUp] = field(default_factory=list)
    facts: list[Fact] = field(default_factory=list)

    def publish(
        self,
        kind: Callable[Concatenate[str, AttemptId, int, Details], E],
        /,
        *args: Details.args,
        **details: Details.kwargs,
    ) -> E:
        """Tell drivers and views of an event of this class, with these fields of its own."""
        event = kind(self.job, self.attempt, self.now.unix_ms, *args, **details)
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
