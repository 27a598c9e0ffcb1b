"""A coordinator without threads, sockets or files: a test plays the subtasks, the driver, the clock and the disk."""

from __future__ import annotations

import errno
from collections.abc import Callable
from typing import TypeVar

from coordinator.events import Attached, Detached, MessageReceived, SessionId
from coordinator.jobs import Jobs
from twopc import events
from twopc.clock import ManualClock
from twopc.protocol.attempts import CheckpointSettings, StartedAttempt
from twopc.protocol.checkpoints import CheckpointKind
from twopc.protocol.facts import Committable, StateHandle, SubtaskSnapshot
from twopc.protocol.ids import AttemptId, CheckpointId, SubtaskIndex
from twopc.protocol.ledger_facts import Entry
from twopc.protocol.ledger_state import decode_entry
from twopc.protocol.messages import (
    Ack,
    Committed,
    Complete,
    Decline,
    EndOfInput,
    ToCoordinator,
    ToSubtask,
    Trigger,
    Welcome,
)
from twopc.protocol.requests import (
    ConfirmCommittables,
    DisposeCheckpoint,
    EndAttempt,
    StartAttempt,
    StopJob,
    TriggerCheckpoint,
)
from twopc.storage.memory import MemoryStore
from twopc.storage.store import CheckpointStore

E = TypeVar("E", bound=events.JobEvent)
F = TypeVar("F", bound=Entry)

JOB = "flights"
INTERVAL = 1_000
TIMEOUT = 10_000
SETTINGS = CheckpointSettings(INTERVAL, TIMEOUT)


def checkpoint(number: int) -> CheckpointId:
    return CheckpointId(number)


def snapshot(subtask: int, *transactions: str, checkpoint_id: int = 1, is_global: bool = False) -> SubtaskSnapshot:
    """What a subtask stored, with these transactions pre-committed."""
    return SubtaskSnapshot.of(
        subtask=SubtaskIndex(subtask),
        positions=(),
        state=StateHandle.inline(f"chk-{checkpoint_id}/subtask-{subtask}", {}, 10, 1),
        committables=tuple(
            Committable(name, CheckpointId(checkpoint_id), SubtaskIndex(subtask), {}, is_global=is_global)
            for name in transactions
        ),
    )


class FaultyStorage(MemoryStore):
    """A disk that is full for the names that a test picks."""

    def __init__(self) -> None:
        super().__init__()
        self.is_full: Callable[[str, bytes], bool] = lambda name, data: False

    def create_once(self, name: str, data: bytes) -> None:
        if self.is_full(name, data):
            raise OSError(errno.ENOSPC, "No space left on device")
        super().create_once(name, data)


def stored(storage: CheckpointStore, kind: type[F]) -> list[F]:
    """The facts of this kind that are stored one by one, in order."""
    entries = [decode_entry(storage.get(name), name)[1] for name in storage.names("ledger/")]
    return [entry for entry in entries if isinstance(entry, kind)]


class Recorder:
    """Keeps what goes out, in order."""

    def __init__(self) -> None:
        self.sent: list[tuple[SessionId, ToSubtask]] = []
        self.hung_up: list[SessionId] = []
        self.events: list[events.CoordinatorEvent] = []

    def send(self, session: SessionId, message: ToSubtask) -> None:
        self.sent.append((session, message))

    def hang_up(self, session: SessionId) -> None:
        self.hung_up.append(session)

    def publish(self, event: events.CoordinatorEvent) -> None:
        self.events.append(event)


class Scene:
    """One job of one coordinator, and everything around it."""

    def __init__(
        self,
        storage: CheckpointStore | None = None,
        settings: CheckpointSettings = SETTINGS,
        job: str = JOB,
        heartbeat_timeout_ms: int = 0,
    ) -> None:
        self.job = job
        self.storage: CheckpointStore = MemoryStore() if storage is None else storage
        self.clock = ManualClock()
        self.attempt = AttemptId(0)
        self.settings = settings
        self._heartbeat_timeout_ms = heartbeat_timeout_ms
        self._sessions = 0
        self.restart()

    def restart(self) -> None:
        """Kill the coordinator and start another on the same disk; nobody is attached to it."""
        self.session_of: dict[int, SessionId] = {}
        self._read: dict[SessionId, int] = {}
        self.use(Recorder())

    def use(self, outlet: Recorder) -> None:
        """Let a coordinator that nobody has talked to yet speak through this outlet."""
        self.outlet = outlet
        self.jobs = Jobs(lambda job: self.storage, self.clock, outlet, lambda: ["stored"])

    def start(
        self, parallelism: int = 2, restore_from: str = "latest", *, restart: bool = False, restart_of: int = 0
    ) -> StartedAttempt:
        wanted = StartAttempt(
            parallelism,
            self.settings,
            restore_from,
            restart=restart,
            restart_of=AttemptId(restart_of),
            host="here",
            pid=7,
        )
        started = self.jobs.start_attempt(self.job, wanted)
        self.attempt = started.attempt
        return started

    def run(self, parallelism: int = 2, *, restart: bool = False) -> None:
        """Start an attempt and attach all of its subtasks."""
        self.start(parallelism, restart=restart)
        for subtask in range(parallelism):
            self.attach(subtask)

    def attach(
        self, subtask: int, last: int = 0, *, at_end: bool = False, attempt: int | None = None, pid: int | None = None
    ) -> SessionId:
        self._sessions += 1
        session = SessionId(self._sessions)
        self.session_of[subtask] = session
        self.jobs.attach(
            self.job,
            Attached(
                session=session,
                attempt=self.attempt if attempt is None else AttemptId(attempt),
                subtask=SubtaskIndex(subtask),
                last_checkpoint_id=CheckpointId(last),
                end_of_input=at_end,
                pid=100 + subtask if pid is None else pid,
                host="here",
                heartbeat_timeout_ms=self._heartbeat_timeout_ms,
            ),
        )
        return session

    def detach(self, subtask: int) -> None:
        self.jobs.take(self.job, (Detached(self.session_of[subtask]),))

    def say(self, subtask: int, *messages: ToCoordinator) -> None:
        session = self.session_of[subtask]
        self.jobs.take(self.job, tuple(MessageReceived(session, message) for message in messages))

    def ack(self, subtask: int, number: int, *transactions: str) -> None:
        self.say(subtask, Ack(CheckpointId(number), snapshot(subtask, *transactions, checkpoint_id=number)))

    def decline(self, subtask: int, number: int, reason: str = "no room") -> None:
        self.say(subtask, Decline(CheckpointId(number), reason))

    def committed(self, subtask: int, number: int) -> None:
        self.say(subtask, Committed(CheckpointId(number)))

    def end_of_input(self, subtask: int) -> None:
        self.say(subtask, EndOfInput())

    def wait(self, milliseconds: int) -> None:
        self.clock.advance(milliseconds)
        self.jobs.tick()

    def stop(self, *, savepoint: bool = False, label: str = "", drain: bool = False) -> None:
        self.jobs.request(self.job, StopJob(self.attempt, savepoint, label, drain))

    def dispose(self, number: int) -> None:
        self.jobs.request(self.job, DisposeCheckpoint(CheckpointId(number)))

    def ask(self, kind: CheckpointKind, label: str = "", request_id: str = "r1") -> None:
        self.jobs.request(self.job, TriggerCheckpoint(kind, label, request_id))

    def end(self, reason: str = "enough") -> None:
        self.jobs.request(self.job, EndAttempt(self.attempt, reason))

    def confirm(self, number: int, *names: str) -> None:
        self.jobs.request(self.job, ConfirmCommittables(self.attempt, CheckpointId(number), names))

    def complete(self, number: int, *, parallelism: int = 2, commit: bool = True) -> None:
        """Let the next periodic checkpoint, which must have this number, complete; each subtask has one transaction."""
        self.wait(self.settings.interval_ms)
        for subtask in range(parallelism):
            assert Trigger(CheckpointId(number)) in self.heard(subtask)
        for subtask in range(parallelism):
            self.ack(subtask, number, f"t{number}-{subtask}")
        for subtask in range(parallelism):
            assert self.heard(subtask) == [Complete(CheckpointId(number))]
            if commit:
                self.committed(subtask, number)

    def heard(self, subtask: int) -> list[ToSubtask]:
        """What this subtask's stream has brought since the last look, its welcome aside."""
        session = self.session_of[subtask]
        messages = [message for to, message in self.outlet.sent if to == session and message != Welcome()]
        seen = self._read.get(session, 0)
        self._read[session] = len(messages)
        return messages[seen:]

    def told(self, kind: type[E], number: int | None = None) -> list[E]:
        """All events of this class so far, in order; of this checkpoint, if a number is given."""
        return [
            event
            for event in self.outlet.events
            if isinstance(event, kind) and number in (None, getattr(event, "checkpoint_id", None))
        ]
