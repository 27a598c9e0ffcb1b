"""How checkpoints, requests for them, and a whole attempt end without success. Pure.

Invariants: a checkpoint ends once; whoever asked for one that ends here is told why; only the first failure of an
attempt is told, and after it nothing is in flight or waiting.
"""

from __future__ import annotations

from collections.abc import Sequence

from coordinator.checkpoint import PendingCheckpoint
from coordinator.failures import ConsecutiveFailures
from coordinator.history import History
from coordinator.in_flight import InFlight
from coordinator.membership import Membership
from coordinator.outbox import Outbox
from coordinator.request_queue import RequestQueue, Wanted
from coordinator.schedule import Schedule, earliest
from twopc.protocol.checkpoints import FailureReason
from twopc.protocol.ids import NO_CHECKPOINT, CheckpointId, SubtaskIndex
from twopc.protocol.job_description import FailedCheckpoint
from twopc.protocol.job_events import WHOLE_JOB, JobEvent, JobEventKind
from twopc.protocol.messages import Abort


class Aborts:
    """Takes what fails out of the tables of an attempt, and says so to subtasks, drivers and views."""

    def __init__(
        self,
        in_flight: InFlight,
        requests: RequestQueue,
        membership: Membership,
        schedule: Schedule,
        history: History,
    ) -> None:
        self.failed: JobEvent | None = None
        self._in_flight = in_flight
        self._requests = requests
        self._membership = membership
        self._schedule = schedule
        self._history = history
        self._failures = ConsecutiveFailures(schedule.settings.tolerable_failures)

    def abort(self, pending: PendingCheckpoint, reason: FailureReason, message: str, out: Outbox) -> None:
        """End this checkpoint without completing it, unless it has ended already."""
        if self._in_flight.remove(pending.checkpoint_id) is None:
            return
        out.send_all(self._membership.sessions, Abort(pending.checkpoint_id, message))
        self.gone(pending.wanted, pending.checkpoint_id, reason, message, out)

    def decline(self, pending: PendingCheckpoint, subtask: SubtaskIndex, said: str, message: str, out: Outbox) -> None:
        """End this checkpoint because of a subtask, which `said` why."""
        reason = FailureReason.CHECKPOINT_DECLINED
        out.publish(
            JobEventKind.DECLINED,
            checkpoint_id=pending.checkpoint_id,
            subtask=subtask,
            message=said,
            reason=reason,
            **pending.wanted.told,
        )
        self.abort(pending, reason, message, out)

    def completed(self, checkpoint_id: CheckpointId, out: Outbox) -> None:
        """This one completed: the failures before it are forgiven, and earlier ones in flight subsumed.

        Subtasks need no Abort: the Complete of the later one says it all.
        """
        self._failures.completed()
        for pending in self._in_flight.before(checkpoint_id):
            self._in_flight.remove(pending.checkpoint_id)
            message = f"checkpoint {checkpoint_id} completed first"
            reason = FailureReason.CHECKPOINT_SUBSUMED
            self._tell(pending.wanted, pending.checkpoint_id, reason, message, out)

    def gone(
        self, wanted: Wanted, checkpoint_id: CheckpointId, reason: FailureReason, message: str, out: Outbox
    ) -> None:
        """This checkpoint, which is in flight no longer, has failed; fail the attempt if that was one too many."""
        self._tell(wanted, checkpoint_id, reason, message, out)
        if not reason.counts:
            return
        self._schedule.failed(out.now.monotonic_ms)
        self._failures.failed(checkpoint_id, wanted.kind, reason)
        if self._failures.intolerable:
            told = f"{self._failures.count} checkpoints in a row failed; the last: {message}"
            self.fail("CheckpointDeclined", told, True, out)

    def all(self, reason: FailureReason, message: str, out: Outbox) -> None:
        """End everything that is in flight, and answer everyone who waits."""
        for pending in self._in_flight.all:
            self.abort(pending, reason, message, out)
        self.refuse_requests(reason, message, out)

    def refuse_requests(self, reason: FailureReason, message: str, out: Outbox) -> None:
        """Answer everyone who waits for a checkpoint that will not be triggered."""
        for wanted in self._requests.clear():
            self._tell(wanted, NO_CHECKPOINT, reason, message, out)

    def fail(
        self, error_type: str, message: str, restartable: bool, out: Outbox, subtask: SubtaskIndex = WHOLE_JOB
    ) -> None:
        """No more checkpoints in this attempt; the driver decides what follows. Only the first failure is told."""
        if self.failed is not None:
            return
        self.failed = out.publish(
            JobEventKind.FAILED, subtask=subtask, message=message, restartable=restartable, error_type=error_type
        )
        reason = FailureReason.JOB_FAILURE if subtask == WHOLE_JOB else FailureReason.TASK_FAILURE
        self.all(reason, f"the attempt failed: {message}", out)

    def expire(self, out: Outbox) -> None:
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
        for wanted in self._requests.waiting:
            if now >= self._schedule.expires(wanted.asked.monotonic_ms):
                self._requests.remove(wanted)
                message = f"{self._membership.attached} of {self._membership.parallelism} subtasks are attached"
                self._tell(wanted, NO_CHECKPOINT, FailureReason.NOT_ALL_REQUIRED_TASKS_RUNNING, message, out)

    def _slow(self, subtasks: Sequence[SubtaskIndex]) -> str:
        """Return what keeps these from acknowledging, if it is a function that they are in."""
        said = [self._membership.progress[subtask] for subtask in subtasks if subtask in self._membership.progress]
        slow = next((progress.slow for progress in said if progress.slow), "")
        return (
            f", which is in {slow}: the function is slow, and a checkpoint waits for the record in hand. Make the "
            "function faster, or --checkpoint-timeout longer"
            if slow
            else ""
        )

    def next_expiry(self) -> int | None:
        """When `expire` has something to do."""
        since = self._in_flight.oldest_trigger
        if not self._membership.all_attached:
            since = earliest((since, self._requests.oldest))
        return None if since is None else self._schedule.expires(since)

    def _tell(
        self, wanted: Wanted, checkpoint_id: CheckpointId, reason: FailureReason, message: str, out: Outbox
    ) -> None:
        out.publish(
            JobEventKind.ABORTED,
            checkpoint_id=checkpoint_id,
            message=message,
            reason=reason,
            **wanted.told,
        )
        self._history.note(
            FailedCheckpoint(
                checkpoint_id=checkpoint_id,
                attempt=out.attempt,
                kind=wanted.kind,
                label=wanted.label,
                request_id=wanted.request_id,
                reason=reason,
                message=message,
                time_ms=out.now.unix_ms,
            )
        )
