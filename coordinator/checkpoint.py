"""One checkpoint from the request for it to its end, and the checkpoints that are in flight together. Pure.

Invariants:
- only the first acknowledgement of each subtask counts;
- ids in flight grow in the order of their triggers, and never exceed the allowed number;
- nothing is triggered while a savepoint or a final checkpoint is in flight: a savepoint must not be subsumed by a later
  checkpoint, and after a final trigger nothing is read that another could cover.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from twopc.errors import ProtocolViolation
from twopc.protocol.checkpoints import CheckpointKind, FailureReason
from twopc.protocol.facts import CheckpointMetadata
from twopc.protocol.followed_times import JobTimes, job_times
from twopc.protocol.ids import NO_CHECKPOINT, AttemptId, CheckpointId, SubtaskIndex
from twopc.protocol.ledger_facts import CheckpointCompleted
from twopc.protocol.messages import Ack, Trigger
from twopc.protocol.times import Instant, SubtaskTimes
from twopc.protocol.transitions import Transitions

_DIGITS = 2
"""Of milliseconds: what a person can make something of."""


class CheckpointPhase(Enum):
    """The phase of a checkpoint; the value is for people."""

    REQUESTED = "due, or asked for: it has no id yet"
    PENDING = "triggered: some subtasks have not acknowledged"
    ACKNOWLEDGED = "acknowledged by all subtasks: what completes it is being stored"
    COMPLETED = "completed: for ever"
    ABORTED = "ended without success"
    EXPIRED = "ended because it took too long"
    SUBSUMED = "ended because a later one completed first"


class CheckpointEvent(Enum):
    """The events of a checkpoint; the value is for people."""

    ID_STORED = "its id is stored"
    ID_NOT_STORED = "its id can't be stored"
    ACKNOWLEDGED = "a subtask acknowledges, and others are missing"
    ACKNOWLEDGED_BY_LAST = "the last missing subtask acknowledges"
    DECLINED = "a subtask declines, or its snapshot is of no use"
    EXPIRED = "its time is over"
    COMPLETION_STORED = "its completion record is stored"
    COMPLETION_NOT_STORED = "its completion record can't be stored"
    LATER_COMPLETED = "a later checkpoint completes"
    ATTEMPT_OVER = "the attempt fails, ends, or is fenced, or takes its final checkpoint instead"


class Effect(Enum):
    """The coordinator's action on a change, beside publishing it; the value is for people."""

    SEND_TRIGGER = "sends `Trigger`"
    STORE_COMPLETION = "stores metadata and completion record"
    SEND_COMPLETE = "sends `Complete`"
    SEND_ABORT = "sends `Abort`"


@dataclass(frozen=True, slots=True)
class Change:
    """The phase after an event, and what is to be done."""

    phase: CheckpointPhase
    effect: Effect | None = None


_P, _E = CheckpointPhase, CheckpointEvent

CHECKPOINT_TRANSITIONS = Transitions(
    "a checkpoint",
    {
        (_P.REQUESTED, _E.ID_STORED): Change(_P.PENDING, Effect.SEND_TRIGGER),
        (_P.REQUESTED, _E.ID_NOT_STORED): Change(_P.ABORTED),
        (_P.REQUESTED, _E.EXPIRED): Change(_P.EXPIRED),
        (_P.REQUESTED, _E.ATTEMPT_OVER): Change(_P.ABORTED),
        (_P.PENDING, _E.ACKNOWLEDGED): Change(_P.PENDING),
        (_P.PENDING, _E.ACKNOWLEDGED_BY_LAST): Change(_P.ACKNOWLEDGED, Effect.STORE_COMPLETION),
        (_P.PENDING, _E.DECLINED): Change(_P.ABORTED, Effect.SEND_ABORT),
        (_P.PENDING, _E.EXPIRED): Change(_P.EXPIRED, Effect.SEND_ABORT),
        # No Abort: the Complete of the later one says it all.
        (_P.PENDING, _E.LATER_COMPLETED): Change(_P.SUBSUMED),
        (_P.PENDING, _E.ATTEMPT_OVER): Change(_P.ABORTED, Effect.SEND_ABORT),
        (_P.ACKNOWLEDGED, _E.COMPLETION_STORED): Change(_P.COMPLETED, Effect.SEND_COMPLETE),
        (_P.ACKNOWLEDGED, _E.COMPLETION_NOT_STORED): Change(_P.ABORTED, Effect.SEND_ABORT),
        (_P.ACKNOWLEDGED, _E.DECLINED): Change(_P.ABORTED, Effect.SEND_ABORT),
        (_P.ACKNOWLEDGED, _E.ATTEMPT_OVER): Change(_P.ABORTED, Effect.SEND_ABORT),
    },
)
"""One that all have acknowledged neither expires nor is subsumed: what completes it is stored before anything else.

`Complete` and `Abort` are sent again to a subtask that acknowledges or declines what has ended already.
"""

EVENT_OF_REASON = {
    FailureReason.CHECKPOINT_EXPIRED: _E.EXPIRED,
    FailureReason.CHECKPOINT_DECLINED: _E.DECLINED,
    FailureReason.CHECKPOINT_SUBSUMED: _E.LATER_COMPLETED,
    FailureReason.IO_EXCEPTION: _E.ID_NOT_STORED,
    FailureReason.FINALIZE_CHECKPOINT_FAILURE: _E.COMPLETION_NOT_STORED,
    FailureReason.NOT_ALL_REQUIRED_TASKS_RUNNING: _E.EXPIRED,
    FailureReason.TASK_FAILURE: _E.ATTEMPT_OVER,
    FailureReason.JOB_FAILURE: _E.ATTEMPT_OVER,
    FailureReason.CHECKPOINT_COORDINATOR_SHUTDOWN: _E.ATTEMPT_OVER,
    FailureReason.CHECKPOINT_COORDINATOR_SUSPEND: _E.ATTEMPT_OVER,
}
"""The end of a checkpoint for each reason; a request that is refused at once never becomes one."""


@dataclass(frozen=True, slots=True)
class CheckpointRequest:
    """A checkpoint that is to be taken, and since when. The periodic one has neither label nor request id."""

    kind: CheckpointKind
    since: Instant
    label: str = ""
    request_id: str = ""

    @property
    def event_fields(self) -> Mapping[str, Any]:
        """The fields by which an event names it."""
        return {"kind": self.kind, "label": self.label, "request_id": self.request_id}


@dataclass(slots=True)
class PendingCheckpoint:
    """One triggered checkpoint."""

    checkpoint_id: CheckpointId
    attempt: AttemptId
    request: CheckpointRequest
    parallelism: int
    triggered: Instant
    phase: CheckpointPhase = CheckpointPhase.PENDING
    times_before: JobTimes = field(default_factory=JobTimes)
    _acks: dict[SubtaskIndex, Ack] = field(default_factory=dict)
    _times: dict[SubtaskIndex, SubtaskTimes] = field(default_factory=dict)

    @property
    def kind(self) -> CheckpointKind:
        return self.request.kind

    @property
    def final(self) -> bool:
        return self.kind.ends_job

    @property
    def trigger(self) -> Trigger:
        """The trigger for a subtask that has not heard of it."""
        return Trigger(self.checkpoint_id, self.final, self.times_before.followed)

    @property
    def exclusive(self) -> bool:
        """Whether nothing else may be triggered before it has ended."""
        return self.kind.ends_job or self.kind.is_savepoint

    def change(self, event: CheckpointEvent) -> Effect | None:
        """Take in an event; return what is to be done. Raise ProtocolViolation for one that can't happen now."""
        change = CHECKPOINT_TRANSITIONS.after(self.phase, event)
        self.phase = change.phase
        return change.effect

    def acknowledge(self, ack: Ack, now: Instant) -> bool:
        """Enter an acknowledgement; return False for a repeated one."""
        subtask = ack.snapshot.subtask
        if subtask in self._acks:
            return False
        is_last = len(self._acks) + 1 == self.parallelism
        self.change(CheckpointEvent.ACKNOWLEDGED_BY_LAST if is_last else CheckpointEvent.ACKNOWLEDGED)
        self._acks[subtask] = ack
        pre_commit, pause, write, store = (round(duration, _DIGITS) for duration in ack.durations)
        since_trigger = now.monotonic_ms - self.triggered.monotonic_ms
        self._times[subtask] = SubtaskTimes(pre_commit, pause, write, store, since_trigger)
        return True

    @property
    def job_times(self) -> JobTimes:
        """The stream times that come of what all have acknowledged."""
        return job_times((ack.times for ack in self._acks.values()), self.times_before.greatest)

    @property
    def acknowledged(self) -> tuple[SubtaskIndex, ...]:
        return tuple(sorted(self._acks))

    @property
    def whole(self) -> bool:
        """Whether all subtasks have acknowledged, and it has not ended."""
        return self.phase is CheckpointPhase.ACKNOWLEDGED

    def has_acknowledged(self, subtask: SubtaskIndex) -> bool:
        return subtask in self._acks

    @property
    def missing(self) -> tuple[SubtaskIndex, ...]:
        """The subtasks that have not acknowledged yet."""
        return tuple(SubtaskIndex(index) for index in range(self.parallelism) if index not in self._acks)

    def metadata(self, job: str, now: Instant) -> CheckpointMetadata:
        """The metadata to store, once nobody is missing."""
        return CheckpointMetadata(
            job=job,
            checkpoint_id=self.checkpoint_id,
            attempt=self.attempt,
            parallelism=self.parallelism,
            kind=self.kind,
            triggered_ms=self.triggered.unix_ms,
            acknowledged_ms=now.unix_ms,
            snapshots=tuple(self._acks[subtask].snapshot for subtask in sorted(self._acks)),
            label=self.request.label,
            times=tuple(self._times[subtask] for subtask in sorted(self._times)),
        )


class InFlight:
    """Ordered by id, oldest first."""

    def __init__(self) -> None:
        self._pending: dict[CheckpointId, PendingCheckpoint] = {}

    def add(self, pending: PendingCheckpoint) -> None:
        self._pending[pending.checkpoint_id] = pending

    def remove(self, checkpoint_id: CheckpointId) -> PendingCheckpoint | None:
        return self._pending.pop(checkpoint_id, None)

    def find(self, checkpoint_id: CheckpointId) -> PendingCheckpoint | None:
        return self._pending.get(checkpoint_id)

    def get(self, checkpoint_id: CheckpointId) -> PendingCheckpoint:
        """The checkpoint of which something was to be stored: nothing else can have ended it meanwhile."""
        pending = self.find(checkpoint_id)
        if pending is None:
            raise ProtocolViolation(f"checkpoint {checkpoint_id} is not in flight, and was to be stored")
        return pending

    @property
    def all(self) -> tuple[PendingCheckpoint, ...]:
        return tuple(self._pending.values())

    def has_room(self, concurrent: int) -> bool:
        """Whether another may be triggered."""
        return not self._pending or (
            len(self._pending) < concurrent and not any(pending.exclusive for pending in self._pending.values())
        )

    def whole(self) -> PendingCheckpoint | None:
        """The oldest that all subtasks have acknowledged, if there is one."""
        # The oldest first: completed after a later one, it would become the newest, and be restored.
        for pending in self._pending.values():
            if pending.whole:
                return pending
        return None

    def before(self, checkpoint_id: CheckpointId) -> tuple[PendingCheckpoint, ...]:
        return tuple(pending for pending in self.all if pending.checkpoint_id < checkpoint_id)

    def after(self, checkpoint_id: CheckpointId) -> tuple[PendingCheckpoint, ...]:
        return tuple(pending for pending in self.all if pending.checkpoint_id > checkpoint_id)

    def acknowledged_by(self, subtask: SubtaskIndex) -> CheckpointId:
        """The latest of these that this subtask has acknowledged; 0 for none."""
        acknowledged = (pending.checkpoint_id for pending in self.all if pending.has_acknowledged(subtask))
        return max(acknowledged, default=NO_CHECKPOINT)

    @property
    def oldest_trigger(self) -> int | None:
        """The time at which the oldest in flight was triggered, in monotonic milliseconds."""
        for oldest in self._pending.values():
            return oldest.triggered.monotonic_ms
        return None

    def __len__(self) -> int:
        return len(self._pending)


def completion_record(metadata: CheckpointMetadata) -> CheckpointCompleted:
    """The fact that completes the checkpoint with this metadata."""
    return CheckpointCompleted(
        checkpoint_id=metadata.checkpoint_id,
        attempt=metadata.attempt,
        kind=metadata.kind,
        metadata_sha256=hashlib.sha256(metadata.stored).hexdigest(),
        committables=tuple(
            tuple(committable.name for committable in snapshot.committables) for snapshot in metadata.snapshots
        ),
        label=metadata.label,
        triggered_ms=metadata.triggered_ms,
        acknowledged_ms=metadata.acknowledged_ms,
        size_bytes=sum(snapshot.state.size_bytes for snapshot in metadata.snapshots),
        global_committables=tuple(committable.name for committable in metadata.committables if committable.is_global),
    )
