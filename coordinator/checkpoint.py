"""One checkpoint in flight: who has acknowledged. Pure.

Invariant: only the first acknowledgement of each subtask counts.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field

from coordinator.request_queue import Wanted
from twopc.protocol.checkpoints import CheckpointKind
from twopc.protocol.facts import CheckpointMetadata
from twopc.protocol.ids import AttemptId, CheckpointId, SubtaskIndex
from twopc.protocol.instant import Instant
from twopc.protocol.ledger_facts import CheckpointCompleted
from twopc.protocol.messages import Ack, Trigger
from twopc.protocol.times import SubtaskTimes

_DIGITS = 2
"""Of milliseconds: what a person can make something of."""


@dataclass(slots=True)
class PendingCheckpoint:
    """The table of one triggered checkpoint."""

    checkpoint_id: CheckpointId
    attempt: AttemptId
    wanted: Wanted
    parallelism: int
    triggered: Instant
    _acks: dict[SubtaskIndex, Ack] = field(default_factory=dict)
    _times: dict[SubtaskIndex, SubtaskTimes] = field(default_factory=dict)

    @property
    def kind(self) -> CheckpointKind:
        return self.wanted.kind

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
            label=self.wanted.label,
            times=tuple(self._times[subtask] for subtask in sorted(self._times)),
        )


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
