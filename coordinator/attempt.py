"""One running attempt: its subtasks, the checkpoint in flight, what is due. Pure.

All of it is lost when the coordinator restarts, and learned again from the subtasks as they attach; what must survive
is in the ledger's state, which every method gets as it is now.
"""

from __future__ import annotations

from typing import assert_never

from coordinator.checkpoint import FINAL, PERIODIC, PendingCheckpoint, completion_record
from coordinator.commits import Claims, Commits, claimed_names
from coordinator.events import Attached, Detached, Said
from coordinator.membership import Membership
from coordinator.outbox import Outbox
from coordinator.retention import to_forget
from coordinator.schedule import Schedule
from twopc.protocol.facts import CheckpointMetadata
from twopc.protocol.ids import CheckpointId, SubtaskIndex
from twopc.protocol.job_events import WHOLE_JOB, JobEvent, JobEventKind
from twopc.protocol.ledger_facts import (
    AttemptEnded,
    AttemptStarted,
    CheckpointCompleted,
    CheckpointReserved,
    CommittablesConfirmed,
    Fact,
    StopRequested,
)
from twopc.protocol.ledger_state import CompletedCheckpoint, LedgerState
from twopc.protocol.messages import (
    Abort,
    Ack,
    Committed,
    Complete,
    Decline,
    EndOfInput,
    Failed,
    FencedOff,
    Progress,
    ToSubtask,
    Trigger,
)

RETRY_STORE_MS = 1_000
"""How long to wait before storing is tried again, where nothing else would ask for it soon."""


class RunningAttempt:
    """Decides for one attempt, between its start and its end. `failed` is the event that said so, if it did."""

    def __init__(self, started: AttemptStarted, tolerable_failures: int) -> None:
        self.number = started.attempt
        self.parallelism = started.parallelism
        self.membership = Membership(started.parallelism)
        self.pending: PendingCheckpoint | None = None
        self.failed: JobEvent | None = None
        self._schedule = Schedule(started.settings)
        self._commits = Commits(started.parallelism)
        self._storing: Claims = {}
        self._tolerable_failures = tolerable_failures
        self._failures = 0
        self._retry_at = 0
        self._burnt = CheckpointId(0)

    def attached(self, event: Attached, state: LedgerState, out: Outbox) -> None:
        """Let a subtask in, and repeat what it may have missed."""
        if self._is_second_process(event, state):
            reason = f"subtask {event.subtask} was started a second time within attempt {self.number}"
            out.send(event.session, FencedOff(reason))
            self._fail("Unavailable", reason, True, out, event.subtask)
            return
        replaced = self.membership.attach(event)
        if replaced is not None:
            out.hang_up(replaced.session)
        out.publish(JobEventKind.ATTACHED, subtask=event.subtask, pid=event.pid, message=event.host)
        self._repeat_missed(event, state, out)
        if self.membership.all_attached and self._schedule.ready is None:
            self._schedule.ready = out.now.monotonic_ms

    def detached(self, event: Detached, out: Outbox) -> None:
        """A checkpoint in flight goes on waiting: the subtask may attach again."""
        gone = self.membership.detach(event.session)
        if gone is not None:
            out.publish(JobEventKind.DETACHED, subtask=gone.subtask)

    def said(self, event: Said, state: LedgerState, out: Outbox) -> None:
        """Take in what a subtask says; a stream that is no member's counts for nothing."""
        member = self.membership.find(event.session)
        if member is None:
            return
        message = event.message
        match message:
            case Ack():
                self._acknowledged(member, message, state, out)
            case Decline():
                self._declined(member, message, state, out)
            case Committed():
                completed = self._own(state.find(message.checkpoint_id))
                if completed is not None:
                    self._commits.say(member.subtask, completed.checkpoint_id)
            case EndOfInput():
                if member.subtask not in self.membership.at_end:
                    self.membership.at_end.add(member.subtask)
                    out.publish(JobEventKind.END_OF_INPUT, subtask=member.subtask)
            case Failed():
                self._fail(message.error_type, message.message, message.restartable, out, member.subtask)
            case Progress():
                out.publish(JobEventKind.PROGRESS, subtask=member.subtask, progress=message)
            case _:
                assert_never(message)

    def decide(self, state: LedgerState, out: Outbox) -> None:
        """Take the next step that is possible now; it may be to ask for facts to be stored."""
        if self.failed:
            return
        now = out.now.monotonic_ms
        if now >= self._retry_at:
            # Else the deadline would stay in the past, and whoever waits for it would spin.
            self._retry_at = 0
        if self.pending is not None and not self.pending.missing:
            metadata = self.pending.metadata(out.job, out.now)
            out.store(metadata, completion_record(metadata))
            return
        if self.pending is not None and now >= self._schedule.expires(self.pending.triggered.monotonic_ms):
            missing = ", ".join(str(subtask) for subtask in self.pending.missing)
            self.abort(f"timed out: no acknowledgement from subtask {missing}", out)
        if now >= self._retry_at and self._settle_claims(state, out):
            return
        if self.final_completed(state):
            if now >= self._retry_at and self._commits.everywhere() >= self.final_completed(state):
                out.store(AttemptEnded(self.number, True, "the final checkpoint is committed everywhere"))
            return
        due = self._due(state)
        if due is not None and now >= due:
            checkpoint_id = CheckpointId(max(state.last_reserved, self._burnt) + 1)
            kind = FINAL if self._final_wanted(state) else PERIODIC
            out.store(CheckpointReserved(checkpoint_id, self.number, kind, to_forget(state.completed)))

    def deadline(self, state: LedgerState) -> int | None:
        """When `decide` has something to do again, if nothing arrives before."""
        if self.failed:
            return None
        times = [self._due(state)]
        if self.pending is not None:
            times.append(self._schedule.expires(self.pending.triggered.monotonic_ms))
        if self._commits.claims() or self.final_completed(state):
            times.append(self._retry_at or None)
        return min((time for time in times if time is not None), default=None)

    def abort(self, reason: str, out: Outbox, *, counts: bool = True) -> None:
        """End the checkpoint in flight without completing it; do nothing if there is none."""
        pending, self.pending = self.pending, None
        if pending is None:
            return
        self.tell_all(Abort(pending.checkpoint_id, reason), out)
        self._aborted(pending.checkpoint_id, reason, out, counts)

    def tell_all(self, message: ToSubtask, out: Outbox) -> None:
        out.send_all(self.membership.sessions, message)

    def fence(self, reason: str, out: Outbox) -> None:
        """Another attempt, or another coordinator, owns the job now."""
        self.abort(reason, out, counts=False)
        self.tell_all(FencedOff(reason), out)

    def reserved(self, fact: CheckpointReserved, out: Outbox) -> None:
        """The id is durable: trigger."""
        self.pending = PendingCheckpoint(fact.checkpoint_id, self.number, fact.kind, self.parallelism, out.now)
        self._schedule.triggered = out.now.monotonic_ms
        out.publish(JobEventKind.TRIGGERED, checkpoint_id=fact.checkpoint_id, final=self.pending.final)
        self.tell_all(Trigger(fact.checkpoint_id, self.pending.final), out)

    def completed(self, fact: CheckpointCompleted, out: Outbox) -> None:
        """The completion record exists: tell everyone."""
        pending, self.pending = self.pending, None
        self._failures = 0
        self._schedule.ended, self._schedule.ended_badly = out.now.monotonic_ms, False
        self._commits.completed_at[fact.checkpoint_id] = out.now
        out.publish(
            JobEventKind.COMPLETED,
            checkpoint_id=fact.checkpoint_id,
            duration_ms=float(out.now.monotonic_ms - pending.triggered.monotonic_ms) if pending else 0.0,
            final=fact.kind == FINAL,
        )
        self.tell_all(Complete(fact.checkpoint_id), out)

    def confirmed(self, out: Outbox) -> None:
        """The claims that were being stored are durable."""
        claims, self._storing = self._storing, {}
        self._commit(claims, out)

    def not_stored(self, fact: Fact, reason: str, out: Outbox) -> None:
        """Storing failed: what hung on it does not happen; what must happen is tried again later."""
        match fact:
            case CheckpointReserved():
                # Whether the id reached the disk is unknown, so it is never used again.
                self._burnt = fact.checkpoint_id
                self._aborted(fact.checkpoint_id, reason, out, counts=True)
            case CheckpointMetadata() | CheckpointCompleted():
                self.abort(reason, out)
            case CommittablesConfirmed() | AttemptEnded():
                self._storing = {}
                self._retry_at = out.now.monotonic_ms + RETRY_STORE_MS
            case AttemptStarted() | StopRequested():
                pass
            case _:
                assert_never(fact)

    def final_completed(self, state: LedgerState) -> CheckpointId:
        """The final checkpoint of this attempt, once it is completed; 0 before."""
        newest = self._own(state.newest)
        return newest.checkpoint_id if newest is not None and newest.record.kind == FINAL else CheckpointId(0)

    def _own(self, completed: CompletedCheckpoint | None) -> CompletedCheckpoint | None:
        """The checkpoint, if this attempt took it: those of earlier attempts were settled by the driver."""
        return completed if completed is not None and completed.record.attempt == self.number else None

    def _newest(self, state: LedgerState) -> CheckpointId:
        newest = self._own(state.newest)
        return newest.checkpoint_id if newest is not None else CheckpointId(0)

    def _is_second_process(self, event: Attached, state: LedgerState) -> bool:
        """Whether this is not the process that acknowledged before: it lacks what that one has pre-committed."""
        acknowledged = self._newest(state)
        if self.pending is not None and event.subtask not in self.pending.missing:
            acknowledged = self.pending.checkpoint_id
        return event.last_checkpoint_id < acknowledged or self.membership.is_another_process(event)

    def _repeat_missed(self, event: Attached, state: LedgerState, out: Outbox) -> None:
        newest, last = self._newest(state), event.last_checkpoint_id
        pending = self.pending.checkpoint_id if self.pending is not None else CheckpointId(0)
        if newest > self._commits.committed(event.subtask):
            out.send(event.session, Complete(newest))
        if last > newest and last != pending:
            out.send(event.session, Abort(last, "aborted while the subtask was not attached"))
        if self.pending is not None and pending > last:
            out.send(event.session, Trigger(pending, self.pending.final))

    def _acknowledged(self, member: Attached, ack: Ack, state: LedgerState, out: Outbox) -> None:
        if self.pending is None or ack.checkpoint_id != self.pending.checkpoint_id:
            self._answer_late(member, ack.checkpoint_id, state, out)
        elif ack.snapshot.subtask != member.subtask:
            self.abort(f"subtask {member.subtask} acknowledged with a snapshot of subtask {ack.snapshot.subtask}", out)
        elif self.pending.acknowledge(ack):
            out.publish(
                JobEventKind.ACKNOWLEDGED,
                checkpoint_id=ack.checkpoint_id,
                subtask=member.subtask,
                duration_ms=ack.pause_ms + ack.store_ms,
                pause_ms=ack.pause_ms,
            )

    def _declined(self, member: Attached, decline: Decline, state: LedgerState, out: Outbox) -> None:
        if self.pending is None or decline.checkpoint_id != self.pending.checkpoint_id:
            self._answer_late(member, decline.checkpoint_id, state, out)
            return
        out.publish(
            JobEventKind.DECLINED,
            checkpoint_id=decline.checkpoint_id,
            subtask=member.subtask,
            message=decline.reason,
        )
        self.abort(f"subtask {member.subtask} declined: {decline.reason}", out)

    def _answer_late(self, member: Attached, checkpoint_id: CheckpointId, state: LedgerState, out: Outbox) -> None:
        """Say again what became of a checkpoint, so that the subtask stops repeating itself."""
        newest = self._newest(state)
        if checkpoint_id <= newest:
            out.send(member.session, Complete(newest))
        else:
            out.send(member.session, Abort(checkpoint_id, "it is no longer pending"))

    def _settle_claims(self, state: LedgerState, out: Outbox) -> bool:
        """Return whether confirmations have to be stored first."""
        claims = self._commits.claims()
        names = claimed_names(claims, state.completed)
        if names:
            self._storing = claims
            out.store(CommittablesConfirmed(max(claims.values()), names))
        else:
            self._commit(claims, out)
        return bool(names)

    def _commit(self, claims: Claims, out: Outbox) -> None:
        before = self._commits.everywhere()
        self._commits.store(claims)
        for subtask, checkpoint_id in claims.items():
            out.publish(JobEventKind.COMMITTED, checkpoint_id=checkpoint_id, subtask=subtask)
        everywhere = self._commits.everywhere()
        if everywhere > before:
            since = self._commits.completed_at.get(everywhere, out.now)
            duration = float(out.now.monotonic_ms - since.monotonic_ms)
            out.publish(JobEventKind.CONFIRMED, checkpoint_id=everywhere, duration_ms=duration)
            self._commits.forget(everywhere)

    def _final_wanted(self, state: LedgerState) -> bool:
        return state.stop_requested or self.membership.all_at_end

    def _due(self, state: LedgerState) -> int | None:
        """When the next checkpoint is to be triggered; None while one is in flight, or not all are attached."""
        if self.pending is not None or not self.membership.all_attached or self.final_completed(state):
            return None
        return self._schedule.next_final() if self._final_wanted(state) else self._schedule.next_periodic()

    def _aborted(self, checkpoint_id: CheckpointId, reason: str, out: Outbox, counts: bool) -> None:
        out.publish(JobEventKind.ABORTED, checkpoint_id=checkpoint_id, message=reason)
        self._schedule.triggered = self._schedule.ended = out.now.monotonic_ms
        self._schedule.ended_badly = True
        self._failures += counts
        if self._failures > self._tolerable_failures:
            message = f"{self._failures} checkpoints in a row failed; the last: {reason}"
            self._fail("CheckpointDeclined", message, True, out)

    def _fail(
        self, error_type: str, message: str, restartable: bool, out: Outbox, subtask: SubtaskIndex = WHOLE_JOB
    ) -> None:
        """No more checkpoints in this attempt; the driver decides what follows. Only the first failure is told."""
        if self.failed is not None:
            return
        self.failed = out.publish(
            JobEventKind.FAILED, subtask=subtask, message=message, restartable=restartable, error_type=error_type
        )
        self.abort(f"the attempt failed: {message}", out, counts=False)
