"""Decides for one job, and does nothing else: pure, one event at a time.

Invariants: an id is durable before its Trigger, a completion before its Complete, a confirmation before its event;
completed ids grow; a message counts only for the attempt that its stream attached with.
"""

from __future__ import annotations

from dataclasses import replace
from typing import assert_never

from coordinator.attempt import RunningAttempt
from coordinator.events import (
    Attached,
    Decision,
    DecisionBuilder,
    Detached,
    Event,
    EventBatch,
    LedgerLost,
    MessageReceived,
    NotStored,
    SnapshotMissing,
    Stored,
    Tick,
)
from coordinator.failures import History, failure_of
from coordinator.requests import check_attempt, fact_of_request
from coordinator.schedule import check_request
from coordinator.status import Phase, describe, phase_of
from twopc import events
from twopc.errors import ConfigurationError, Fenced, ProtocolViolation
from twopc.protocol.attempt_facts import AttemptEnded, AttemptStarted, StopRequested
from twopc.protocol.facts import CheckpointMetadata
from twopc.protocol.ids import NO_CHECKPOINT
from twopc.protocol.job_description import JobDescription
from twopc.protocol.ledger_facts import (
    CheckpointCompleted,
    CheckpointReserved,
    CheckpointsDisposed,
    CommittablesConfirmed,
    Fact,
    LossSettled,
)
from twopc.protocol.ledger_state import LedgerState
from twopc.protocol.messages import FencedOff, Finish
from twopc.protocol.planned_starts import StartsPlanned
from twopc.protocol.requests import Command, EndAttempt, NoteInput, RefuseRescale, Rescale, TriggerCheckpoint
from twopc.protocol.times import Instant

_OUTCOMES = (Stored, NotStored, SnapshotMissing)


class Core:
    """The state machine of one job. `state` is what the ledger holds."""

    def __init__(self, job: str, state: LedgerState) -> None:
        self.state = state
        self._job = job
        self._fenced = ""
        self._asked = False
        self._deadline: int | None = None
        self._knows_deadline = False
        self._history = History()
        self._running = RunningAttempt(state.attempt, self._history, resumed=True) if state.attempt else None

    @property
    def phase(self) -> Phase:
        return Phase.FENCED if self._fenced else phase_of(self.state, self._running)

    @property
    def serves(self) -> bool:
        """Whether any subtask is attached, or anybody waits for a checkpoint."""
        running = self._running
        return running is not None and bool(running.membership.attached or running.in_flight or running.requests)

    def step(self, event: Event, now: Instant) -> Decision:
        """Take in one event and decide. A request that is refused raises, and changes nothing."""
        if self._asked is not isinstance(event, _OUTCOMES) and not isinstance(event, LedgerLost):
            raise ProtocolViolation(f"the coordinator's core got {type(event).__name__} out of turn")
        out = DecisionBuilder(self._job, self.state.current, now)
        self._knows_deadline = False
        self._take(event, out)
        if not out.facts and self._running is not None and not self.state.ended and not self._fenced:
            self._running.decide(self.state, out)
        self._asked = bool(out.facts)
        return out.decision()

    def deadline(self) -> int | None:
        """The monotonic time at which a Tick is needed, if nothing happens before; another only after a step."""
        if not self._knows_deadline:
            running = None if self.state.ended or self._fenced else self._running
            self._deadline = None if running is None else running.deadline(self.state)
            self._knows_deadline = True
        return self._deadline

    def status(self, now: Instant) -> tuple[events.CoordinatorEvent, ...]:
        """The status of the job, for one who starts to watch; then its attempt's end once more, if it has ended."""
        running, newest = self._running, self.state.newest
        waiting = running is not None and self.phase is Phase.WAITING
        attached = f" ({running.membership.attached} of {running.parallelism} attached)" if running and waiting else ""
        out = DecisionBuilder(self._job, self.state.current, now)
        out.publish(
            events.JobStatus,
            checkpoint_id=newest.checkpoint_id if newest else NO_CHECKPOINT,
            message=f"{self.phase.value}{attached}",
        )
        if self._fenced:
            out.publish(events.AttemptFenced, message=self._fenced)
        elif self.state.ended is not None and self.state.ended.finished:
            newest_id = newest.checkpoint_id if newest else NO_CHECKPOINT
            out.publish(events.JobFinished, checkpoint_id=newest_id, message=self.state.ended.reason)
        elif self.state.ended is None and running is not None and running.failed is not None:
            out.events.append(running.failed)
        elif self.state.ended is None and running is not None and running.rescale is not None:
            out.events.append(running.rescale)
        return out.decision().events

    def describe(self) -> JobDescription:
        """The description of the job, in full."""
        running = self._running
        problem = self._fenced or (self.state.ended.reason if self.state.ended else "")
        if not problem and running is not None and running.failed is not None:
            problem = running.failed.message
        return describe(self._job, self.phase.value, problem, self.state, running, self._history)

    def _take(self, event: Event, out: DecisionBuilder) -> None:
        match event:
            case EventBatch():
                for each in event.events:
                    self._subtask(each, out)
            case Attached() | Detached() | MessageReceived():
                self._subtask(event, out)
            case Stored():
                self.state = event.state
                for fact in event.facts:
                    self._history.stored(getattr(fact, "aborted", ()))
                    self._stored(fact, out)
            case NotStored() if self._running is not None:
                self._running.not_stored(event.facts[-1], event.reason, out)
            case SnapshotMissing() if self._running is not None:
                self._running.snapshot_missing(event, out)
            case LedgerLost():
                self._lost(event.reason, out)
            case Tick() | NotStored() | SnapshotMissing():
                pass
            case _:
                self._request(event, out)

    def _request(self, event: Command, out: DecisionBuilder) -> None:
        if self._fenced:
            if isinstance(event, EndAttempt):
                return
            raise Fenced(self._fenced)
        match event:
            case TriggerCheckpoint():
                check_request(event.kind, event.label, event.request_id)
                self._going_on(f"no {event.kind} can be taken").request(event, out)
            case Rescale():
                self._going_on("it can't be rescaled").want_rescale(event, self.state, out)
            case RefuseRescale():
                check_attempt(self.state, event.attempt)
                if self._running is not None:
                    self._running.refuse_rescale(event, out)
            case NoteInput():
                check_attempt(self.state, event.attempt)
                if self._running is not None:
                    self._running.input_notes = event.notes
            case _:
                fact = fact_of_request(self.state, event, out.now)
                if fact is not None:
                    out.store(self._with_past(fact, out.now))

    def _with_past(self, fact: Fact, now: Instant) -> Fact:
        """Add what an attempt's start and end remember of what was before, for people."""
        match fact:
            case AttemptStarted():
                failed = self._running.failed if self._running is not None else None
                failure = None if failed is None else failure_of(failed)
                return replace(fact, failure=failure, aborted=self._history.unstored)
            case AttemptEnded():
                return replace(fact, ended_ms=now.unix_ms, aborted=self._history.unstored)
            case _:
                return fact

    def _going_on(self, refused: str) -> RunningAttempt:
        """Return the attempt that runs; raise ConfigurationError where none does, or it is about to end."""
        running = self._running
        if running is None or running.failed or self.state.ended:
            raise ConfigurationError(f"{refused}: no attempt of job {self._job!r} runs")
        if self.state.stop_requested or self.state.final_completed:
            raise ConfigurationError(f"{refused}: job {self._job!r} is stopping")
        return running

    def _subtask(self, event: Attached | Detached | MessageReceived, out: DecisionBuilder) -> None:
        if isinstance(event, Attached) and self._refused(event, out):
            return
        running = self._running
        if running is None:
            return
        match event:
            case Attached():
                running.attached(event, self.state, out)
            case Detached():
                running.detached(event, out)
            case MessageReceived():
                if self.state.ended is None and not self._fenced:
                    running.on_message(event, self.state, out)
            case _:
                assert_never(event)

    def _refused(self, event: Attached, out: DecisionBuilder) -> bool:
        """Turn away a subtask that is not of the running attempt."""
        running = self._running
        if self._fenced:
            out.send(event.session, FencedOff(self._fenced))
        elif running is None or event.attempt != self.state.current:
            driver = self.state.attempt.driver if self.state.attempt is not None else ""
            reason = f"attempt {event.attempt} is not the current one, {self.state.current}{driver}"
            out.send(event.session, FencedOff(reason))
        elif self.state.ended is not None:
            out.send(event.session, Finish())
        elif event.subtask >= running.parallelism:
            raise ConfigurationError(f"there is no subtask {event.subtask}: the parallelism is {running.parallelism}")
        else:
            return False
        return True

    def _stored(self, fact: Fact, out: DecisionBuilder) -> None:
        if isinstance(fact, CheckpointMetadata):
            return
        if isinstance(fact, AttemptStarted):
            self._start(fact, out)
            return
        running = self._running
        if running is None:
            raise ProtocolViolation(f"{type(fact).__name__} was stored while no attempt runs")
        match fact:
            case CheckpointReserved():
                running.reserved(fact, out)
            case CheckpointCompleted():
                running.completed(fact, out)
            case CommittablesConfirmed():
                running.confirmations.stored(out)
            case AttemptEnded():
                self._ended(fact, running, out)
            case LossSettled():
                out.publish(events.LossSettled, checkpoint_id=fact.checkpoint_id, message=fact.message)
            case StopRequested() | CheckpointsDisposed() | StartsPlanned():
                running.request_stored(fact, out)
            case _:
                assert_never(fact)

    def _ended(self, fact: AttemptEnded, running: RunningAttempt, out: DecisionBuilder) -> None:
        running.ended(fact, out)
        if fact.finished:
            newest = self.state.newest
            newest_id = newest.checkpoint_id if newest else NO_CHECKPOINT
            out.publish(events.JobFinished, checkpoint_id=newest_id, message=fact.reason)
        running.send_all(Finish(), out)

    def _start(self, fact: AttemptStarted, out: DecisionBuilder) -> None:
        if self._running is not None:
            self._running.fence(f"attempt {fact.attempt} owns the job now{fact.driver}", out)
        self._running = RunningAttempt(fact, self._history)
        out.attempt = fact.attempt
        out.publish(events.AttemptStarted, restored=fact.restored, restart=fact.restart)

    def _lost(self, reason: str, out: DecisionBuilder) -> None:
        self._fenced = reason
        if self._running is not None:
            self._running.fence(reason, out)
        out.publish(events.AttemptFenced, message=reason)
