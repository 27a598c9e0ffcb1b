"""The shell around the cores: stores what they ask for, publishes, sends, and reports back. One thread only.

Invariant: what depends on a fact is published and sent after the fact is durable, and never if storing it failed.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import Protocol

from coordinator.core import Core
from coordinator.crash_places import after_sending, after_storing, before_storing
from coordinator.events import (
    Attached,
    AttemptRequested,
    CheckpointAsked,
    ConfirmRequested,
    Decision,
    Detached,
    DisposeAsked,
    EndAsked,
    Event,
    HangUp,
    LedgerLost,
    LossDecided,
    NotStored,
    PlanRequested,
    Request,
    Said,
    SessionId,
    StopAsked,
    Stored,
    Tick,
    Together,
    Unseen,
)
from coordinator.ledger import Ledger, SnapshotUnseen
from coordinator.phase import Phase
from coordinator.reading_back import earlier_checkpoints, read_back
from coordinator.requests import LATEST, Outrun, refuse_outrun, refuse_unknown_past
from coordinator.schedule import earliest
from coordinator.storage import Storage
from coordinator.tidying import prune, tidy
from twopc.clock import Clock
from twopc.errors import Fenced, ProtocolViolation, Unavailable
from twopc.faults.points import CrashPoint, reached
from twopc.protocol.attempt_facts import AttemptEnded, AttemptStarted
from twopc.protocol.attempts import StartedAttempt
from twopc.protocol.ids import checked_name
from twopc.protocol.job_description import JobDescription
from twopc.protocol.job_events import JobEvent, JobEventKind
from twopc.protocol.ledger_facts import Fact
from twopc.protocol.messages import ToSubtask

CLAIMS = 20
"""How often an attempt is tried to be started, where another coordinator writes to the same ledger."""

_OF_AN_ATTEMPT = (AttemptStarted, AttemptEnded)

log = logging.getLogger(__name__)


class Outlet(Protocol):
    """Where messages and events go; never blocks, never raises."""

    def send(self, session: SessionId, message: ToSubtask) -> None: ...

    def hang_up(self, session: SessionId) -> None: ...

    def publish(self, event: JobEvent) -> None: ...


class _Job:
    """One loaded job: what is durable, and what decides."""

    def __init__(self, name: str, ledger: Ledger) -> None:
        self.name = name
        self.ledger = ledger
        self.core = Core(name, ledger.state)


class Jobs:
    """All jobs of one coordinator, each loaded from its ledger when it is first asked for."""

    def __init__(
        self,
        storage_of: Callable[[str], Storage],
        clock: Clock,
        outlet: Outlet,
        stored_names: Callable[[], Iterable[str]] = tuple,
    ) -> None:
        self._storage_of = storage_of
        self._clock = clock
        self._outlet = outlet
        self._stored_names = stored_names
        self._jobs: dict[str, _Job] = {}

    def start_attempt(self, name: str, request: AttemptRequested) -> StartedAttempt:
        """Start the next attempt of a job.

        Whoever starts an attempt takes the job over, from a coordinator that is writing to the ledger at this moment
        too; but a driver that starts one again after a failure does not, from another driver that did so since. Raises
        ConfigurationError, CheckpointCorrupted, Unavailable, or Fenced if the other is quicker every time.
        """
        for _ in range(CLAIMS - 1):
            try:
                return self._claim(name, request)
            except Outrun:
                raise
            except Fenced as error:
                log.info("job %s: %s; reading the ledger again", name, error)
        return self._claim(name, request)

    def request(
        self,
        name: str,
        request: ConfirmRequested | LossDecided | PlanRequested | StopAsked | CheckpointAsked | EndAsked | DisposeAsked,
    ) -> None:
        """Do what was asked; raise Fenced, ConfigurationError, or Unavailable if it can't be done now."""
        self._request(self._job(name), request)

    def attach(self, name: str, attached: Attached) -> None:
        """Let a subtask in, or turn it away with a message."""
        self._drive(self._job(name), attached)

    def take(self, name: str, events: tuple[Detached | Said, ...]) -> None:
        """Take in what subtasks have said, all that has arrived together."""
        self._drive(self._job(name), Together(events))

    def status(self, name: str) -> tuple[JobEvent, ...]:
        """What one who starts to watch has to know."""
        return self._job(name).core.status(self._clock.now())

    def describe(self, name: str) -> JobDescription:
        """Where a job stands, in full. Raises ConfigurationError, CheckpointCorrupted or Unavailable."""
        return self._job(name).core.describe()

    def names(self) -> tuple[str, ...]:
        """The jobs of this coordinator, and those that it would find where ledgers are stored."""
        return tuple(sorted({*self._jobs, *self._stored_names()}))

    def deadline(self) -> int | None:
        """The monotonic time at which `tick` has something to do."""
        return earliest([job.core.deadline() for job in self._jobs.values()])

    def tick(self) -> None:
        """Do what is due by now."""
        now = self._clock.now().monotonic_ms
        for job in self._jobs.values():
            deadline = job.core.deadline()
            if deadline is not None and deadline <= now:
                self._drive(job, Tick())

    def _claim(self, name: str, request: AttemptRequested) -> StartedAttempt:
        ledger = self._read(name)
        refuse_outrun(ledger.state, request)
        refuse_unknown_past(ledger.state, request)
        job = self._jobs.get(name)
        if job is None or job.core.phase is Phase.FENCED or job.core.state != ledger.state:
            if job is not None and job.core.serves:
                self._drive(job, LedgerLost(f"another coordinator has owned job {name!r} in between"))
            job = self._jobs[name] = _Job(name, ledger)
        job.ledger = ledger
        latest, restored = read_back(job.ledger, request.restore_from)
        completed = job.core.state.find(latest.checkpoint_id) if latest is not None else None
        ran_before = job.core.state.attempt is not None
        self._request(job, request)
        return StartedAttempt(
            attempt=job.core.state.current,
            latest=latest,
            restored=restored,
            confirmed=completed.confirmed if completed is not None else frozenset(),
            earlier_attempts=ran_before,
            lost=completed.lost if completed is not None else frozenset(),
            earlier=earlier_checkpoints(job.ledger, completed),
            planned=job.core.state.planned if request.restore_from == LATEST else None,
        )

    def _job(self, name: str) -> _Job:
        job = self._jobs.get(name)
        if job is None:
            job = self._jobs[name] = _Job(name, self._read(name))
        return job

    def _read(self, name: str) -> Ledger:
        storage = self._storage_of(checked_name("job", name))
        try:
            return Ledger(name, storage)
        except OSError as error:
            raise Unavailable(f"the ledger of job {name!r} can't be read: {error.strerror}") from error

    def _request(self, job: _Job, request: Request) -> None:
        match self._drive(job, request):
            case NotStored() if isinstance(request, CheckpointAsked):
                # It was queued; what could not be stored is told by events.
                pass
            case NotStored(reason=reason, outrun=outrun):
                raise Fenced(reason) if outrun else Unavailable(reason)
            case LedgerLost(reason=reason):
                raise Fenced(reason)
            case _:
                pass

    def _drive(self, job: _Job, event: Event) -> Event | None:
        """Step until nothing more has to be stored; return what became of the first facts, None if there were none."""
        outcome: Event | None = None
        following: Event | None = event
        while following is not None:
            decision = job.core.step(following, self._clock.now())
            self._emit(decision)
            if isinstance(following, Stored):
                tidy(job.name, job.ledger, following.facts)
            following = self._store(job, decision.facts) if decision.facts else None
            outcome = outcome or following
        return outcome

    def _emit(self, decision: Decision) -> None:
        for event in decision.events:
            self._outlet.publish(event)
            if event.kind is JobEventKind.ACKNOWLEDGED and not decision.facts:
                reached(CrashPoint.COORDINATOR_IN_ACKS, checkpoint=event.checkpoint_id)
        for number, message in enumerate(decision.messages, start=1):
            if isinstance(message, HangUp):
                self._outlet.hang_up(message.session)
            else:
                self._outlet.send(message.session, message.message)
                after_sending(message.message, is_last=number == len(decision.messages))

    def _store(self, job: _Job, facts: tuple[Fact, ...]) -> Event:
        try:
            for fact in facts:
                before_storing(fact)
                job.ledger.store(fact)
                after_storing(fact)
        except (Fenced, ProtocolViolation) as error:
            if isinstance(facts[-1], AttemptStarted):
                return NotStored(facts, str(error), outrun=True)
            log.error("job %s: %s", job.name, error)
            return LedgerLost(str(error))
        except SnapshotUnseen as error:
            log.error("job %s: the snapshot of subtask %d is not seen: %s", job.name, error.subtask, error)
            return Unseen(facts, error.checkpoint_id, error.subtask, str(error))
        except OSError as error:
            reason = f"the coordinator could not store it: {error.strerror or type(error).__name__}"
            log.error("job %s: %s (%s)", job.name, reason, type(facts[-1]).__name__)
            return NotStored(facts, reason)
        if isinstance(facts[-1], _OF_AN_ATTEMPT):
            prune(job.name, job.ledger, facts)
        return Stored(facts, job.ledger.state)
