"""One running attempt: what its subtasks say, and what is to be done next. Pure.

All of it is lost when the coordinator restarts, and learned again from the subtasks as they attach; what must survive
is in the ledger's state, which every method gets as it is now.
"""

from __future__ import annotations

from typing import assert_never

from coordinator.aborts import Aborts
from coordinator.catching_up import CatchingUp
from coordinator.checkpoint import PendingCheckpoint, completion_record
from coordinator.confirmations import Confirmations
from coordinator.events import Attached, CheckpointAsked, Detached, Unseen
from coordinator.hearing import Hearing
from coordinator.history import History
from coordinator.in_flight import InFlight
from coordinator.membership import Membership
from coordinator.outbox import Outbox
from coordinator.request_queue import RequestQueue, Wanted
from coordinator.schedule import Schedule, earliest
from coordinator.triggering import Triggering
from twopc.protocol.attempt_facts import AttemptEnded, AttemptStarted, StopRequested
from twopc.protocol.checkpoints import CheckpointKind, FailureReason
from twopc.protocol.facts import CheckpointMetadata
from twopc.protocol.job_events import JobEvent, JobEventKind
from twopc.protocol.ledger_facts import (
    CheckpointCompleted,
    CheckpointReserved,
    CheckpointsDisposed,
    CommittablesConfirmed,
    Fact,
    LossSettled,
)
from twopc.protocol.ledger_state import LedgerState
from twopc.protocol.messages import (
    Complete,
    Drain,
    FencedOff,
    ToSubtask,
    Welcome,
)
from twopc.protocol.planned_starts import StartsPlanned


class RunningAttempt:
    """Decides for one attempt, between its start and its end."""

    def __init__(self, started: AttemptStarted, history: History) -> None:
        self.number = started.attempt
        self.parallelism = started.parallelism
        self.settings = started.settings
        self.membership = Membership(started.parallelism)
        self.in_flight = InFlight()
        self.confirmations = Confirmations(started.parallelism)
        self._history = history
        self._schedule = Schedule(started.settings)
        self._triggering = Triggering(started, self._schedule, self.in_flight, self.membership)
        self._catching_up = CatchingUp(self.in_flight, self.confirmations)
        self._aborts = Aborts(self.in_flight, self.requests, self.membership, self._schedule, history)
        self.hearing = Hearing(
            self.number, self.membership, self.in_flight, self.confirmations, self._catching_up, self._aborts
        )

    @property
    def requests(self) -> RequestQueue:
        return self._triggering.requests

    @property
    def failed(self) -> JobEvent | None:
        """The event that said that the attempt failed, if it did."""
        return self._aborts.failed

    def attached(self, event: Attached, state: LedgerState, out: Outbox) -> None:
        """Let a subtask in, and repeat what it may have missed."""
        if self._catching_up.has_forgotten(event, state) or self.membership.is_another_process(event):
            reason = f"subtask {event.subtask} was started a second time within attempt {self.number}"
            out.send(event.session, FencedOff(reason))
            self._aborts.fail("Unavailable", reason, True, out, event.subtask)
            return
        replaced = self.membership.attach(event)
        if replaced is not None:
            out.hang_up(replaced.session)
        out.publish(JobEventKind.ATTACHED, subtask=event.subtask, pid=event.pid, message=event.host)
        out.send(event.session, Welcome())
        self._catching_up.repeat_missed(event, state, out)
        if self.membership.all_attached and self._schedule.ready is None:
            self._schedule.ready = out.now.monotonic_ms

    def detached(self, event: Detached, out: Outbox) -> None:
        """A checkpoint in flight goes on waiting: the subtask may attach again."""
        gone = self.membership.detach(event.session)
        if gone is not None:
            out.publish(JobEventKind.DETACHED, subtask=gone.subtask)

    def asked(self, event: CheckpointAsked, out: Outbox) -> None:
        """Queue a request; raise Unavailable if too many are waiting. One that was made before is fine."""
        if event.request_id not in self._history.requests:
            self.requests.put(Wanted(event.kind, out.now, event.label, event.request_id))
            self._history.requests.append(event.request_id)

    def decide(self, state: LedgerState, out: Outbox) -> None:
        """Take the next step that is possible now; it may be to ask for facts to be stored."""
        now = out.now.monotonic_ms
        may_store = self.confirmations.may_store(now)
        if self._aborts.failed:
            # What is said is not waited for any more: the next attempt may start at any moment.
            if may_store:
                self.confirmations.settle(state, out)
            return
        whole = self.in_flight.whole()
        if whole is not None:
            metadata = whole.metadata(out.job, out.now)
            out.store(metadata, completion_record(metadata))
            return
        self._aborts.expire(out)
        confirm_at = self.confirmations.due(state.newest_of_attempt)
        if may_store and confirm_at is not None and now >= confirm_at and self.confirmations.settle(state, out):
            return
        if self._aborts.failed:
            return
        if state.final_completed:
            if may_store and self.confirmations.everywhere >= state.final_completed:
                out.store(AttemptEnded(self.number, True, "the final checkpoint is committed everywhere"))
            return
        due = self._triggering.due(state)
        if due is not None and now >= due:
            self._triggering.reserve(state, out)

    def deadline(self, state: LedgerState) -> int | None:
        """When `decide` has something to do again, if nothing arrives before."""
        if self._aborts.failed:
            return self.confirmations.due(state.newest_of_attempt)
        confirm_at = self.confirmations.due(state.newest_of_attempt)
        return earliest((self._triggering.due(state), self._aborts.next_expiry(), confirm_at))

    def fence(self, reason: str, out: Outbox) -> None:
        """Another attempt, or another coordinator, owns the job now."""
        self._aborts.all(FailureReason.CHECKPOINT_COORDINATOR_SUSPEND, reason, out)
        self.tell_all(FencedOff(reason), out)

    def tell_all(self, message: ToSubtask, out: Outbox) -> None:
        out.send_all(self.membership.sessions, message)

    def told(self, fact: StopRequested | CheckpointsDisposed | StartsPlanned, out: Outbox) -> None:
        """What a person asked for, or the driver planned, is durable."""
        if isinstance(fact, StopRequested) and fact.drain:
            self.tell_all(Drain(), out)

    def reserved(self, fact: CheckpointReserved, out: Outbox) -> None:
        """The id is durable: trigger."""
        due = self._triggering.reserved(fact, out.now)
        pending = PendingCheckpoint(due.checkpoint_id, self.number, due.wanted, self.parallelism, out.now)
        self.in_flight.add(pending)
        if due.wanted.kind is CheckpointKind.PERIODIC:
            self._schedule.triggered = out.now.monotonic_ms
        out.publish(JobEventKind.TRIGGERED, checkpoint_id=due.checkpoint_id, **due.wanted.told)
        self.tell_all(pending.trigger, out)

    def completed(self, fact: CheckpointCompleted, out: Outbox) -> None:
        """The completion record exists: tell everyone."""
        pending = self.in_flight.remove(fact.checkpoint_id)
        self._schedule.completed(out.now.monotonic_ms)
        self._history.completed += 1
        self.confirmations.completed(fact.checkpoint_id, out.now)
        wanted = pending.wanted if pending is not None else Wanted(fact.kind, out.now, fact.label)
        out.publish(
            JobEventKind.COMPLETED,
            checkpoint_id=fact.checkpoint_id,
            duration_ms=float(out.now.monotonic_ms - pending.triggered.monotonic_ms) if pending else 0.0,
            **wanted.told,
        )
        self.tell_all(Complete(fact.checkpoint_id), out)
        self._aborts.completed(fact.checkpoint_id, out)
        if fact.kind.ends_job:
            reason = FailureReason.CHECKPOINT_COORDINATOR_SHUTDOWN
            self._aborts.refuse_requests(reason, "the job has taken its final checkpoint", out)

    def ended(self, fact: AttemptEnded, out: Outbox) -> None:
        """Nothing more comes of this attempt."""
        self._aborts.all(FailureReason.CHECKPOINT_COORDINATOR_SHUTDOWN, f"the attempt ended: {fact.reason}", out)

    def not_stored(self, fact: Fact, reason: str, out: Outbox) -> None:
        """Storing failed: what hung on it does not happen; what must happen is tried again later."""
        match fact:
            case CheckpointReserved():
                due = self._triggering.not_reserved(fact, out.now)
                self._aborts.gone(due.wanted, due.checkpoint_id, FailureReason.IO_EXCEPTION, reason, out)
            case CheckpointMetadata() | CheckpointCompleted():
                pending = self.in_flight.find(fact.checkpoint_id)
                if pending is not None:
                    self._aborts.abort(pending, FailureReason.FINALIZE_CHECKPOINT_FAILURE, reason, out)
            case CommittablesConfirmed() | AttemptEnded():
                self.confirmations.not_stored(out.now.monotonic_ms)
            case AttemptStarted() | LossSettled() | StartsPlanned() | StopRequested() | CheckpointsDisposed():
                pass
            case _:
                assert_never(fact)

    def unseen(self, event: Unseen, out: Outbox) -> None:
        """A subtask has stored its snapshot elsewhere: whoever restored this checkpoint would not find it."""
        pending = self.in_flight.find(event.checkpoint_id)
        if pending is not None:
            host = self.membership.host_of(event.subtask)
            message = (
                f"subtask {event.subtask} on {host} stored its snapshot where the coordinator does not see it "
                f"({event.what}): is --checkpoint-dir one folder that all machines share?"
            )
            self._aborts.decline(pending, event.subtask, message, message, out)
