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
from typing import Any

from twopc.protocol.checkpoints import CheckpointKind
from twopc.protocol.facts import CheckpointMetadata
from twopc.protocol.ids import NO_CHECKPOINT, AttemptId, CheckpointId, SubtaskIndex
from twopc.protocol.instant import Instant
from twopc.protocol.ledger_facts import CheckpointCompleted
from twopc.protocol.messages import Ack, Trigger
from twopc.protocol.times import SubtaskTimes

_DIGITS = 2
"""Of milliseconds: what a person can make something of."""


@dataclass(frozen=True, slots=True)
class CheckpointRequest:
    """A checkpoint that is to be taken, and since when. The periodic one has neither label nor request id."""

    kind: CheckpointKind
    since: Instant
    label: str = ""
    request_id: str = ""

    @property
    def event_fields(self) -> Mapping[str, Any]:
        """How an event names it."""
        return {"checkpoint_kind": self.kind, "label": self.label, "request_id": self.request_id}


@dataclass(slots=True)
class PendingCheckpoint:
    """The table of one triggered checkpoint."""

    checkpoint_id: CheckpointId
    attempt: AttemptId
    request: CheckpointRequest
    parallelism: int
    triggered: Instant
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
        """What to say to a subtask that has not heard of it."""
        return Trigger(self.checkpoint_id, self.final)

    @property
    def exclusive(self) -> bool:
        """Whether nothing else may be triggered before it has ended."""
        return self.kind.ends_job or self.kind.is_savepoint

    def acknowledge(self, ack: Ack, now: Instant) -> bool:
        """Enter an acknowledgement; return False for a repeated one."""
        subtask = ack.snapshot.subtask
        if subtask in self._acks:
            return False
        self._acks[subtask] = ack
        pre_commit, pause, write, store = (round(each, _DIGITS) for each in ack.durations)
        since_trigger = now.monotonic_ms - self.triggered.monotonic_ms
        self._times[subtask] = SubtaskTimes(pre_commit, pause, write, store, since_trigger)
        return True

    @property
    def acknowledged(self) -> tuple[SubtaskIndex, ...]:
        return tuple(sorted(self._acks))

    @property
    def whole(self) -> bool:
        """Whether all subtasks have acknowledged."""
        return len(self._acks) == self.parallelism

    def has_acknowledged(self, subtask: SubtaskIndex) -> bool:
        return subtask in self._acks

    @property
    def missing(self) -> tuple[SubtaskIndex, ...]:
        """The subtasks that have not acknowledged yet."""
        return tuple(SubtaskIndex(index) for index in range(self.parallelism) if index not in self._acks)

    def metadata(self, job: str, now: Instant) -> CheckpointMetadata:
        """What to store, once nobody is missing."""
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
        """When the one that has been in flight longest was triggered, in monotonic milliseconds."""
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
    )
