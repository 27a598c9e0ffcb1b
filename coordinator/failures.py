"""The failures of checkpoints, of requests for them, and of a whole attempt. Pure.

Invariants: a checkpoint ends once; the requester of one that ends here gets the reason; only the first failure of an
attempt is published, and after it nothing is in flight or waiting.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from coordinator.checkpoint import (
    CHECKPOINT_TRANSITIONS,
    EVENT_OF_REASON,
    CheckpointPhase,
    CheckpointRequest,
    Effect,
    InFlight,
    PendingCheckpoint,
)
from coordinator.events import DecisionBuilder
from coordinator.membership import Membership
from coordinator.schedule import RequestQueue, Schedule, earliest
from twopc import events
from twopc.protocol.checkpoints import CheckpointKind, FailureReason
from twopc.protocol.history import REMEMBERED
from twopc.protocol.ids import NO_CHECKPOINT, CheckpointId, SubtaskIndex
from twopc.protocol.job_description import FailedCheckpoint
from twopc.protocol.messages import Abort
from twopc.protocol.outcomes import MESSAGE_MAX, AbortedCheckpoint, AttemptFailure

KEPT_FAILURES = 10
KEPT_REQUESTS = 2_000


@dataclass(slots=True)
class History:
    """The history of a job's checkpoints since the coordinator loaded it: lost at a restart.

    Counters over all attempts, the last failures, those of them that no fact of the ledger says yet, and the ids of the
    last requests; oldest first. For people, but for
    one thing: a request that is repeated, because its answer was lost, is known as the same.
    """

    completed: int = 0
    failed: int = 0
    failures: deque[FailedCheckpoint] = field(default_factory=lambda: deque(maxlen=KEPT_FAILURES))
    unstored: tuple[AbortedCheckpoint, ...] = ()
    requests: deque[str] = field(default_factory=lambda: deque(maxlen=KEPT_REQUESTS))

    def note(self, failure: FailedCheckpoint) -> None:
        self.failed += 1
        self.failures.append(failure)
        self.unstored = (*self.unstored, _aborted(failure))[-REMEMBERED:]

    def stored(self, aborted: tuple[AbortedCheckpoint, ...]) -> None:
        """These are in the ledger now."""
        self.unstored = tuple(checkpoint for checkpoint in self.unstored if checkpoint not in aborted)


def _aborted(failure: FailedCheckpoint) -> AbortedCheckpoint:
    return AbortedCheckpoint(
        failure.checkpoint_id,
        failure.attempt,
        failure.kind,
        failure.label,
        failure.reason,
        failure.message[:MESSAGE_MAX],
        failure.time_ms,
    )


def failure_of(event: events.AttemptFailed) -> AttemptFailure:
    """Return what the ledger remembers of it."""
    return AttemptFailure(event.error_type, event.message[:MESSAGE_MAX], event.subtask, event.time_ms)


class ConsecutiveFailures:
    """The number of checkpoints of an attempt that failed in a row; Flink's CheckpointFailureManager.

    Invariants: each id counts once; a completed checkpoint forgives all before it; savepoints and what is no failure of
    the checkpoint itself (subsumed, the attempt ended, ...) don't count.
    """

    def __init__(self, tolerable: int) -> None:
        self._tolerable = tolerable
        self._failed: set[CheckpointId] = set()

    def failed(self, checkpoint_id: CheckpointId, kind: CheckpointKind, reason: FailureReason) -> None:
        if reason.counts and kind is not CheckpointKind.SAVEPOINT:
            self._failed.add(checkpoint_id)

    def completed(self) -> None:
        self._failed.clear()

    @property
    def count(self) -> int:
        return len(self._failed)

    @property
    def intolerable(self) -> bool:
        return self.count > self._tolerable


class Failures:
    """Takes what fails out of the tables of an attempt, and says so to subtasks, drivers and views."""

    def __init__(
        self,
        in_flight: InFlight,
        requests: RequestQueue,
        membership: Membership,
        schedule: Schedule,
        history: History,
    ) -> None:
        self.failed: events.AttemptFailed | None = None
        self._in_flight = in_flight
        self._requests = requests
        self._membership = membership
        self._schedule = schedule
        self._history = history
        self._consecutive = ConsecutiveFailures(schedule.settings.tolerable_failures)

    def abort(self, pending: PendingCheckpoint, reason: FailureReason, message: str, out: DecisionBuilder) -> None:
        """End this checkpoint without completing it, unless it has ended already."""
        if self._in_flight.remove(pending.checkpoint_id) is None:
            return
        if pending.change(EVENT_OF_REASON[reason]) is Effect.SEND_ABORT:
            out.send_all(self._membership.sessions, Abort(pending.checkpoint_id, message))
        self._record(pending.request, pending.checkpoint_id, reason, message, out)

    def decline(
        self, pending: PendingCheckpoint, subtask: SubtaskIndex, doing: str, message: str, out: DecisionBuilder
    ) -> None:
        """End this checkpoint because of a subtask, which `doing` why."""
        reason = FailureReason.CHECKPOINT_DECLINED
        out.publish(
            events.CheckpointDeclined,
            checkpoint_id=pending.checkpoint_id,
            subtask=subtask,
            message=doing,
        )
        self.abort(pending, reason, message, out)

    def completed(self, checkpoint_id: CheckpointId, out: DecisionBuilder) -> None:
        """This one completed: the failures before it are forgiven, and earlier ones in flight subsumed."""
        self._consecutive.completed()
        for pending in self._in_flight.before(checkpoint_id):
            message = f"checkpoint {checkpoint_id} completed first"
            self.abort(pending, FailureReason.CHECKPOINT_SUBSUMED, message, out)

    def refuse(
        self,
        request: CheckpointRequest,
        reason: FailureReason,
        message: str,
        out: DecisionBuilder,
        checkpoint_id: CheckpointId = NO_CHECKPOINT,
    ) -> None:
        """End a request that was not triggered; it may have an id that could not be stored."""
        CHECKPOINT_TRANSITIONS.after(CheckpointPhase.REQUESTED, EVENT_OF_REASON[reason])
        self._record(request, checkpoint_id, reason, message, out)

    def _record(
        self,
        request: CheckpointRequest,
        checkpoint_id: CheckpointId,
        reason: FailureReason,
        message: str,
        out: DecisionBuilder,
    ) -> None:
        """Publish that this ended so; fail the attempt if that was one failure too many."""
        self._publish_abort(request, checkpoint_id, reason, message, out)
        if not reason.counts:
            return
        self._schedule.failed(out.now.monotonic_ms)
        self._consecutive.failed(checkpoint_id, request.kind, reason)
        if self._consecutive.intolerable:
            account = f"{self._consecutive.count} checkpoints in a row failed; the last: {message}"
            self.fail("CheckpointDeclined", account, True, out)

    def abort_all(self, reason: FailureReason, message: str, out: DecisionBuilder) -> None:
        """End everything that is in flight, and answer everyone who waits."""
        for pending in self._in_flight.all:
            self.abort(pending, reason, message, out)
        self.refuse_requests(reason, message, out)

    def refuse_requests(self, reason: FailureReason, message: str, out: DecisionBuilder) -> None:
        """Answer everyone who waits for a checkpoint that will not be triggered."""
        for request in self._requests.clear():
            self.refuse(request, reason, message, out)

    def fail(
        self,
        error_type: str,
        message: str,
        restartable: bool,
        out: DecisionBuilder,
        subtask: SubtaskIndex | None = None,
    ) -> None:
        """No more checkpoints in this attempt; the driver decides what follows. Only the first failure is told."""
        if self.failed is not None:
            return
        self.failed = out.publish(
            events.AttemptFailed, subtask=subtask, message=message, restartable=restartable, error_type=error_type
        )
        reason = FailureReason.JOB_FAILURE if subtask is None else FailureReason.TASK_FAILURE
        self.abort_all(reason, f"the attempt failed: {message}", out)

    def expire(self, out: DecisionBuilder) -> None:
        """Abort what has been in flight for too long, and requests that wait too long for subtasks to attach."""
        all_attached = self._membership.all_attached
        if all_attached and not self._in_flight:
            return
        now = out.now.monotonic_ms
        for pending in self._in_flight.all:
            if now >= self._schedule.expires(pending.triggered.monotonic_ms):
                missing = ", ".join(str(subtask) for subtask in pending.missing)
                message = f"timed out: no acknowledgement from subtask {missing}{self._slow(pending.missing)}"
                self.abort(pending, FailureReason.CHECKPOINT_EXPIRED, message, out)
        if all_attached:
            return
        for request in self._requests.waiting:
            if now >= self._schedule.expires(request.since.monotonic_ms):
                self._requests.remove(request)
                message = f"{self._membership.attached} of {self._membership.parallelism} subtasks are attached"
                self.refuse(request, FailureReason.NOT_ALL_REQUIRED_TASKS_RUNNING, message, out)

    def _slow(self, subtasks: Sequence[SubtaskIndex]) -> str:
        """Return what keeps these from acknowledging, if it is a function that they are in."""
        reports = [self._membership.progress[subtask] for subtask in subtasks if subtask in self._membership.progress]
        slow = next((progress.slow for progress in reports if progress.slow), "")
        return (
            f", which is in {slow}: the function is slow, and a checkpoint waits for the record in hand. Make the "
            "function faster, or --checkpoint-timeout longer"
            if slow
            else ""
        )

    def next_expiry(self) -> int | None:
        """The time at which `expire` has something to do."""
        since = self._in_flight.oldest_trigger
        if not self._membership.all_attached:
            since = earliest((since, self._requests.oldest))
        return None if since is None else self._schedule.expires(since)

    def _publish_abort(
        self,
        request: CheckpointRequest,
        checkpoint_id: CheckpointId,
        reason: FailureReason,
        message: str,
        out: DecisionBuilder,
    ) -> None:
        out.publish(
            events.CheckpointAborted,
            checkpoint_id=checkpoint_id,
            message=message,
            reason=reason,
            **request.event_fields,
        )
        self._history.note(
            FailedCheckpoint(
                checkpoint_id=checkpoint_id,
                attempt=out.attempt,
                kind=request.kind,
                label=request.label,
                request_id=request.request_id,
                reason=reason,
                message=message,
                time_ms=out.now.unix_ms,
            )
        )
