"""All jobs of one coordinator, each loaded from its ledger when it is first asked for. One thread only."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import Any, TypeVar, cast

from coordinator.events import Attached, Detached, EventBatch, LedgerLost, MessageReceived, NotStored, Tick
from coordinator.ledger import Ledger
from coordinator.requests import Superseded, check_attempt, refuse_superseded, refuse_unknown_past
from coordinator.restore_plan import earlier_checkpoints, next_global_commit, plan_restore
from coordinator.schedule import earliest
from coordinator.shell import DecisionSink, JobShell
from coordinator.status import Phase
from twopc import events
from twopc.clock import Clock
from twopc.errors import Fenced, Unavailable
from twopc.protocol.attempts import GlobalCommit, StartedAttempt
from twopc.protocol.checkpoints import LATEST
from twopc.protocol.ids import AttemptId, checked_name
from twopc.protocol.job_description import JobDescription
from twopc.protocol.requests import Command, NextGlobalCommit, Request, StartAttempt, TriggerCheckpoint
from twopc.storage.store import CheckpointStore

A = TypeVar("A")

CLAIMS = 20
"""How often an attempt is tried to be started, where another coordinator writes to the same ledger."""

log = logging.getLogger(__name__)


class Jobs:
    """The jobs of a coordinator, as its one thread serves its callers with them."""

    def __init__(
        self,
        store_of: Callable[[str], CheckpointStore],
        clock: Clock,
        sink: DecisionSink,
        stored_names: Callable[[], Iterable[str]] = tuple,
    ) -> None:
        self._store_of = store_of
        self._clock = clock
        self._sink = sink
        self._stored_names = stored_names
        self._jobs: dict[str, JobShell] = {}

    def start_attempt(self, name: str, request: StartAttempt) -> StartedAttempt:
        """Start the next attempt of a job.

        Whoever starts an attempt takes the job over, from a coordinator that is writing to the ledger at this moment
        too; but a driver that starts one again after a failure does not, from another driver that did so since. Raises
        ConfigurationError, CheckpointCorrupted, Unavailable, or Fenced if the other is quicker every time.
        """
        for _ in range(CLAIMS - 1):
            try:
                return self._claim(name, request)
            except Superseded:
                raise
            except Fenced as error:
                log.info("job %s: %s; reading the ledger again", name, error)
        return self._claim(name, request)

    def answer(self, name: str, request: Request[A]) -> A:
        """Answer any request of the table; raise what `start_attempt`, `request` and `next_global_commit` raise."""
        answer: Any = None
        match request:
            case StartAttempt():
                answer = self.start_attempt(name, request)
            case NextGlobalCommit():
                answer = self.next_global_commit(name, request.attempt)
            case _:
                self.request(name, cast(Command, request))
        return cast(A, answer)

    def request(self, name: str, request: Command) -> None:
        """Do what was asked; raise Fenced, ConfigurationError, or Unavailable if it can't be done now."""
        self._request(self._job(name), request)

    def next_global_commit(self, name: str, attempt: AttemptId) -> GlobalCommit | None:
        """The next global commit; raise Fenced for any but the current attempt."""
        job = self._job(name)
        check_attempt(job.core.state, attempt)
        try:
            return next_global_commit(job.ledger)
        except OSError as error:
            raise Unavailable(f"a checkpoint of job {name!r} can't be read: {error.strerror}") from error

    def attach(self, name: str, attached: Attached) -> None:
        """Let a subtask in, or turn it away with a message."""
        self._job(name).drive(attached)

    def take(self, name: str, events: tuple[Detached | MessageReceived, ...]) -> None:
        """Take in what subtasks have said, all that has arrived together."""
        self._job(name).drive(EventBatch(events))

    def status(self, name: str) -> tuple[events.CoordinatorEvent, ...]:
        """The status of a job for one who starts to watch."""
        return self._job(name).core.status(self._clock.now())

    def describe(self, name: str) -> JobDescription:
        """The description of a job, in full. Raises ConfigurationError, CheckpointCorrupted or Unavailable."""
        return self._job(name).core.describe()

    def describe_known(self) -> tuple[JobDescription, ...]:
        """The descriptions of all jobs that were asked for before, by name: none is loaded for it."""
        return tuple(self._jobs[name].core.describe() for name in sorted(self._jobs))

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
                job.drive(Tick())

    def _claim(self, name: str, request: StartAttempt) -> StartedAttempt:
        ledger = self._read(name)
        refuse_superseded(ledger.state, request)
        refuse_unknown_past(ledger.state, request)
        job = self._jobs.get(name)
        if job is None or job.core.phase is Phase.FENCED or job.core.state != ledger.state:
            if job is not None and job.core.serves:
                job.drive(LedgerLost(f"another coordinator has owned job {name!r} in between"))
            job = self._jobs[name] = JobShell(name, ledger, self._clock, self._sink)
        job.ledger = ledger
        latest, restored = plan_restore(job.ledger, request.restore_from)
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

    def _job(self, name: str) -> JobShell:
        job = self._jobs.get(name)
        if job is None:
            job = self._jobs[name] = JobShell(name, self._read(name), self._clock, self._sink)
        return job

    def _read(self, name: str) -> Ledger:
        store = self._store_of(checked_name("job", name))
        try:
            return Ledger(name, store)
        except OSError as error:
            raise Unavailable(f"the ledger of job {name!r} can't be read: {error.strerror}") from error

    def _request(self, job: JobShell, request: Command) -> None:
        match job.drive(request):
            case NotStored() if isinstance(request, TriggerCheckpoint):
                # It was queued; what could not be stored is told by events.
                pass
            case NotStored(reason=reason, superseded=superseded):
                raise Fenced(reason) if superseded else Unavailable(reason)
            case LedgerLost(reason=reason):
                raise Fenced(reason)
            case _:
                pass
