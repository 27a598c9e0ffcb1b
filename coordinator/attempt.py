"""One running attempt: what its subtasks say, and what is to be done next. Pure.

All of it is lost when the coordinator restarts, and learned again from the subtasks as they attach; what must survive
is in the ledger's state, which every method gets as it is now. A stream may break at any message: so a subtask says on
attaching what it has heard, repeats what it was not answered, and gets what it lacks.

Invariants: a message counts only from a member's stream, an acknowledgement only for a checkpoint that is in flight,
and only with a snapshot of the subtask that sends it; a commit counts only of a checkpoint that this attempt completed.
"""

from __future__ import annotations

from typing import assert_never

from coordinator.checkpoint import (
    CheckpointEvent,
    CheckpointRequest,
    InFlight,
    PendingCheckpoint,
    completion_record,
)
from coordinator.commits import Confirmations
from coordinator.committed_times import CommittedTimes
from coordinator.events import Attached, DecisionBuilder, Detached, MessageReceived, SnapshotMissing
from coordinator.failures import Failures, History
from coordinator.membership import Membership
from coordinator.schedule import CheckpointTrigger, RequestQueue, Schedule, earliest
from coordinator.silence import Absences, Silences
from coordinator.stages import StageEnds
from twopc import events
from twopc.protocol.attempt_facts import AttemptEnded, AttemptStarted, StopRequested
from twopc.protocol.checkpoints import CheckpointKind, FailureReason
from twopc.protocol.facts import CheckpointMetadata
from twopc.protocol.ids import NO_CHECKPOINT, CheckpointId
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
    Abort,
    Ack,
    Committed,
    Complete,
    Decline,
    Drain,
    EndOfInput,
    Failed,
    FencedOff,
    Progress,
    ToSubtask,
    Welcome,
)
from twopc.protocol.planned_starts import StartsPlanned
from twopc.protocol.requests import RefuseRescale, Rescale, TriggerCheckpoint


class RunningAttempt:
    """Decides for one attempt, between its start and its end.

    `resumed`: it was begun by a coordinator that was here before this one.
    """

    def __init__(self, started: AttemptStarted, history: History, *, resumed: bool = False) -> None:
        self.number = started.attempt
        self.parallelism = started.parallelism
        self.membership = Membership(started.parallelism)
        self.in_flight = InFlight()
        self.requests = RequestQueue()
        self.confirmations = Confirmations(started.parallelism)
        self.rescale: events.RescaleRequested | None = None
        self.input_notes: tuple[str, ...] = ()
        self._silences = Silences()
        self._absences = Absences(started.parallelism, resumed)
        self._stages = StageEnds(self.membership, self.in_flight)
        self._history = history
        self._times = CommittedTimes()
        self._schedule = Schedule(started.settings, goes_on=started.restored != NO_CHECKPOINT)
        self._triggering = CheckpointTrigger(started, self._schedule, self.requests)
        self._failures = Failures(self.in_flight, self.requests, self.membership, self._schedule, history)

    @property
    def failed(self) -> events.AttemptFailed | None:
        """The event that said that the attempt failed, if it did."""
        return self._failures.failed

    def attached(self, event: Attached, state: LedgerState, out: DecisionBuilder) -> None:
        """Let a subtask in, and repeat what it may have missed."""
        if self._has_forgotten(event, state) or self.membership.is_another_process(event):
            reason = f"subtask {event.subtask} was started a second time within attempt {self.number}"
            out.send(event.session, FencedOff(reason))
            self._failures.fail("Unavailable", reason, True, out, event.subtask)
            return
        replaced = self.membership.attach(event)
        self._silences.heard(event, out.now.monotonic_ms)
        self._absences.came(event, out.now.monotonic_ms)
        if replaced is not None:
            out.hang_up(replaced.session)
        out.publish(events.SubtaskAttached, subtask=event.subtask, pid=event.pid, host=event.host)
        out.send(event.session, Welcome())
        self._repeat_missed(event, state, out)
        if self.membership.all_attached and self._schedule.ready is None:
            self._schedule.ready = out.now.monotonic_ms

    def detached(self, event: Detached, out: DecisionBuilder) -> None:
        """A checkpoint in flight goes on waiting: the subtask may attach again."""
        gone = self.membership.detach(event.session)
        if gone is not None:
            self._silences.gone(gone, out.now.monotonic_ms)
            out.publish(events.SubtaskDetached, subtask=gone.subtask)

    def _has_forgotten(self, event: Attached, state: LedgerState) -> bool:
        """Whether this is not the process that acknowledged before: it lacks what that one has pre-committed."""
        acknowledged = max(state.newest_of_attempt, self.in_flight.acknowledged_by(event.subtask))
        return event.last_checkpoint_id < acknowledged

    def _repeat_missed(self, event: Attached, state: LedgerState, out: DecisionBuilder) -> None:
        """Compare what the subtask has heard with what there was to hear, and send the difference."""
        newest, last = state.newest_of_attempt, event.last_checkpoint_id
        # Nobody else repeats a lost completion, and until the subtask hears it readers see nothing more.
        if newest > self.confirmations.reported_by(event.subtask):
            out.send(event.session, Complete(newest))
        if last > newest and self.in_flight.find(last) is None:
            out.send(event.session, Abort(last, "aborted while the subtask was not attached"))
        if state.stop is not None and state.stop.drain:
            out.send(event.session, Drain())
        if self._stages.bounded:
            out.send(event.session, Drain(self._stages.bounded))
        for pending in self.in_flight.after(last):
            out.send(event.session, pending.trigger)

    def on_message(self, event: MessageReceived, state: LedgerState, out: DecisionBuilder) -> None:
        """Take in a message; one of a stream that is no member's counts for nothing."""
        member = self.membership.find(event.session)
        if member is None:
            return
        self._silences.heard(member, out.now.monotonic_ms)
        message = event.message
        match message:
            case Ack():
                self._on_ack(member, message, state, out)
            case Decline():
                self._on_decline(member, message, state, out)
            case Committed():
                completed = state.find(message.checkpoint_id)
                if completed is not None and completed.record.attempt == self.number:
                    self.confirmations.report(member.subtask, completed.checkpoint_id, out.now)
            case EndOfInput():
                if self.membership.end(member.subtask, message):
                    out.publish(events.EndOfInput, subtask=member.subtask)
            case Failed():
                self._failures.fail(message.error_type, message.message, message.restartable, out, member.subtask)
            case Progress():
                self._on_progress(member, message, out)
            case _:
                assert_never(message)

    def _on_progress(self, member: Attached, progress: Progress, out: DecisionBuilder) -> None:
        self.membership.report(member.subtask, progress)
        out.publish(events.SubtaskProgress, subtask=member.subtask, progress=progress)
        for error in self.membership.news(progress.new_record_errors):
            out.publish(events.RecordFailed, subtask=member.subtask, error=error)

    def _on_ack(self, member: Attached, ack: Ack, state: LedgerState, out: DecisionBuilder) -> None:
        # Of its own checkpoint only: counted for another, that one would complete without this subtask's snapshot.
        pending = self.in_flight.find(ack.checkpoint_id)
        if pending is None:
            self._answer_late(member, ack.checkpoint_id, state, out)
        elif ack.snapshot.subtask != member.subtask:
            message = f"subtask {member.subtask} acknowledged with a snapshot of subtask {ack.snapshot.subtask}"
            self._failures.abort(pending, FailureReason.CHECKPOINT_DECLINED, message, out)
        elif pending.acknowledge(ack, out.now):
            out.publish(
                events.CheckpointAcknowledged,
                checkpoint_id=ack.checkpoint_id,
                subtask=member.subtask,
                duration_ms=ack.pause_ms + ack.store_ms,
                pause_ms=ack.pause_ms,
            )

    def _on_decline(self, member: Attached, decline: Decline, state: LedgerState, out: DecisionBuilder) -> None:
        pending = self.in_flight.find(decline.checkpoint_id)
        if pending is None:
            self._answer_late(member, decline.checkpoint_id, state, out)
            return
        message = f"subtask {member.subtask} declined: {decline.reason}"
        self._failures.decline(pending, member.subtask, decline.reason, message, out)

    def _answer_late(
        self, member: Attached, checkpoint_id: CheckpointId, state: LedgerState, out: DecisionBuilder
    ) -> None:
        """Send again what became of a checkpoint, so that the subtask stops repeating itself."""
        newest = state.newest_of_attempt
        if checkpoint_id <= newest:
            out.send(member.session, Complete(newest))
        else:
            out.send(member.session, Abort(checkpoint_id, "it is no longer pending"))

    def request(self, event: TriggerCheckpoint, out: DecisionBuilder) -> None:
        """Queue a request; raise Unavailable if too many are waiting. One that was made before is fine."""
        if event.request_id not in self._history.requests:
            self.requests.put(CheckpointRequest(event.kind, out.now, event.label, event.request_id))
            self._history.requests.append(event.request_id)

    def want_rescale(self, event: Rescale, state: LedgerState, out: DecisionBuilder) -> None:
        """Tell the driver that another number of subtasks is wanted; the latest wish counts."""
        after = state.newest.checkpoint_id if state.newest else NO_CHECKPOINT
        self.rescale = out.publish(
            events.RescaleRequested, parallelism=event.parallelism, after=after, request_id=event.request_id
        )

    def refuse_rescale(self, event: RefuseRescale, out: DecisionBuilder) -> None:
        """Tell who asked that it can't be; a wish that was replaced meanwhile is not what the driver refuses."""
        if self.rescale is not None and self.rescale.request_id == event.request_id:
            self.rescale = None
            out.publish(events.RescaleRefused, message=event.message, request_id=event.request_id)

    def decide(self, state: LedgerState, out: DecisionBuilder) -> None:
        """Take the next step that is possible now; it may be to ask for facts to be stored."""
        now = out.now.monotonic_ms
        may_store = self.confirmations.may_store(now)
        if self.failed:
            # What subtasks reported is stored without waiting for more: the next attempt may start at any moment.
            if may_store:
                self.confirmations.settle(state, out)
            return
        whole = self.in_flight.whole()
        if whole is not None:
            # First of all: a checkpoint that all have acknowledged completes, though its time is over by now.
            metadata = whole.metadata(out.job, out.now)
            out.store(metadata, completion_record(metadata))
            return
        self._give_up_waiting(out)
        confirm_at = self.confirmations.due(state.newest_of_attempt)
        if may_store and confirm_at is not None and now >= confirm_at and self.confirmations.settle(state, out):
            return
        if self.failed:
            # An expiry was one failure too many, or somebody is silent.
            return
        if state.final_completed:
            # The job ends when all have committed its last output, and that is durable: never before.
            committed = self.confirmations.everywhere >= state.final_completed and state.next_global_commit is None
            if may_store and committed:
                reason = "the final checkpoint is committed everywhere"
                out.store(AttemptEnded(self.number, True, reason, out.now.unix_ms, self._history.unstored))
            return
        stage = self._stages.next_to_end(self.confirmations.everywhere)
        if stage is not None:
            self.send_all(Drain(stage), out)
        due = self._trigger_due(state)
        if due is not None and now >= due:
            self._triggering.reserve(state, self.membership.all_at_end, self._history.unstored, out)

    def _give_up_waiting(self, out: DecisionBuilder) -> None:
        """End what has taken too long: checkpoints, and the attempt if a subtask is silent, or does not come."""
        self._failures.expire(out)
        now = out.now.monotonic_ms
        self._absences.begin(now)
        if complaint := self._silences.complaint(now) or self._absences.complaint(now):
            subtask, message = complaint
            self._failures.fail("Unavailable", message, True, out, subtask)

    def deadline(self, state: LedgerState) -> int | None:
        """The time at which `decide` has something to do again, if nothing arrives before."""
        confirm_at = self.confirmations.due(state.newest_of_attempt)
        if self.failed:
            return confirm_at
        silence_at = earliest((self._silences.due(), self._absences.due()))
        return earliest((self._trigger_due(state), self._failures.next_expiry(), silence_at, confirm_at))

    def _trigger_due(self, state: LedgerState) -> int | None:
        """The time of the next trigger; None while there is no room, or not all are attached."""
        if not self.membership.all_attached or state.final_completed:
            return None
        if not self.in_flight.has_room(self._schedule.settings.concurrent):
            return None
        due = self._triggering.due(state, self.membership.all_at_end)
        if self._stages.needs_checkpoint(state.newest_of_attempt, self.confirmations.everywhere):
            return earliest((due, self._schedule.next_final()))
        return due

    def fence(self, reason: str, out: DecisionBuilder) -> None:
        """Another attempt, or another coordinator, owns the job now."""
        self._failures.abort_all(FailureReason.CHECKPOINT_COORDINATOR_SUSPEND, reason, out)
        self.send_all(FencedOff(reason), out)

    def send_all(self, message: ToSubtask, out: DecisionBuilder) -> None:
        out.send_all(self.membership.sessions, message)

    def request_stored(self, fact: StopRequested | CheckpointsDisposed | StartsPlanned, out: DecisionBuilder) -> None:
        """What a person or the driver asked for is durable; only draining is the subtasks' affair at once."""
        if isinstance(fact, StopRequested) and fact.drain:
            self.send_all(Drain(), out)

    def reserved(self, fact: CheckpointReserved, out: DecisionBuilder) -> None:
        """The id is durable: trigger."""
        request = self._triggering.reserved(fact, out.now)
        times = self._times.through(self.confirmations.everywhere)
        pending = PendingCheckpoint(
            fact.checkpoint_id, self.number, request, self.parallelism, out.now, times_before=times
        )
        self.in_flight.add(pending)
        self._stages.triggered(fact.checkpoint_id)
        if request.kind is CheckpointKind.PERIODIC:
            self._schedule.trigger(out.now.monotonic_ms)
        out.publish(events.CheckpointTriggered, checkpoint_id=fact.checkpoint_id, **request.event_fields)
        self.send_all(pending.trigger, out)

    def completed(self, fact: CheckpointCompleted, out: DecisionBuilder) -> None:
        """The completion record exists: notify everyone."""
        pending = self.in_flight.get(fact.checkpoint_id)
        pending.change(CheckpointEvent.COMPLETION_STORED)
        times = pending.job_times
        self._times.completed(fact.checkpoint_id, times)
        self._stages.completed(fact.checkpoint_id, times.followed == pending.times_before.followed)
        self.in_flight.remove(fact.checkpoint_id)
        self._schedule.completed(out.now.monotonic_ms)
        self._history.completed += 1
        self.confirmations.completed(fact.checkpoint_id, out.now)
        out.publish(
            events.CheckpointCompleted,
            checkpoint_id=fact.checkpoint_id,
            duration_ms=float(out.now.monotonic_ms - pending.triggered.monotonic_ms),
            **pending.request.event_fields,
        )
        # Only now that the record is durable: a commit before it could be one that no recovery knows of.
        self.send_all(Complete(fact.checkpoint_id), out)
        self._failures.completed(fact.checkpoint_id, out)
        if fact.kind.ends_job:
            reason = FailureReason.CHECKPOINT_COORDINATOR_SHUTDOWN
            self._failures.refuse_requests(reason, "the job has taken its final checkpoint", out)

    def ended(self, fact: AttemptEnded, out: DecisionBuilder) -> None:
        """Nothing more comes of this attempt."""
        reason = FailureReason.CHECKPOINT_COORDINATOR_SHUTDOWN
        self._failures.abort_all(reason, f"the attempt ended: {fact.reason}", out)

    def not_stored(self, fact: Fact, reason: str, out: DecisionBuilder) -> None:
        """Storing failed: what hung on it does not happen; what must happen is tried again later."""
        match fact:
            case CheckpointReserved():
                request = self._triggering.not_reserved(fact, out.now)
                self._failures.refuse(request, FailureReason.IO_EXCEPTION, reason, out, fact.checkpoint_id)
            case CheckpointMetadata() | CheckpointCompleted():
                pending = self.in_flight.get(fact.checkpoint_id)
                self._failures.abort(pending, FailureReason.FINALIZE_CHECKPOINT_FAILURE, reason, out)
            case CommittablesConfirmed() | AttemptEnded():
                self.confirmations.not_stored(out.now.monotonic_ms)
            case AttemptStarted() | LossSettled() | StartsPlanned() | StopRequested() | CheckpointsDisposed():
                pass
            case _:
                assert_never(fact)

    def snapshot_missing(self, event: SnapshotMissing, out: DecisionBuilder) -> None:
        """A subtask has stored its snapshot elsewhere: a restore of this checkpoint would not find it."""
        pending, host = self.in_flight.get(event.checkpoint_id), self.membership.host_of(event.subtask)
        message = (
            f"subtask {event.subtask} on {host} stored its snapshot where the coordinator does not see it "
            f"({event.what}): is --checkpoint-dir one folder that all machines share?"
        )
        self._failures.decline(pending, event.subtask, message, message, out)
