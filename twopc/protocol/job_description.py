"""The description of a job, as its coordinator knows it: for people and tools, never for a decision. Frozen values."""

from __future__ import annotations

from dataclasses import dataclass

from twopc.protocol.attempts import CheckpointSettings
from twopc.protocol.checkpoints import CheckpointKind, FailureReason
from twopc.protocol.ids import AttemptId, CheckpointId, SubtaskIndex
from twopc.protocol.messages import Progress
from twopc.protocol.record_errors import RecordErrorCount, counts_in


@dataclass(frozen=True, slots=True)
class SubtaskDescription:
    """One subtask of the current attempt. `pid` and `host` are of the process that attached last, 0 and "" before."""

    subtask: SubtaskIndex
    attached: bool
    at_end: bool
    pid: int
    host: str
    progress: Progress | None
    committed: CheckpointId


@dataclass(frozen=True, slots=True)
class CheckpointInFlight:
    """A checkpoint that is triggered and neither completed nor aborted."""

    checkpoint_id: CheckpointId
    kind: CheckpointKind
    label: str
    request_id: str
    triggered_ms: int
    acknowledged: tuple[SubtaskIndex, ...]


@dataclass(frozen=True, slots=True)
class QueuedRequest:
    """A checkpoint that somebody asked for and that is not triggered yet."""

    kind: CheckpointKind
    label: str
    request_id: str
    asked_ms: int


@dataclass(frozen=True, slots=True)
class KeptCheckpoint:
    """A completed checkpoint that can be restored. Times are Unix milliseconds; `size_bytes` is of all its state.

    `outstanding` names the committables whose commit nobody has confirmed yet, `globally_outstanding` those among them
    that a global committer has to commit.
    """

    checkpoint_id: CheckpointId
    attempt: AttemptId
    kind: CheckpointKind
    label: str
    triggered_ms: int
    completed_ms: int
    size_bytes: int
    outstanding: tuple[str, ...]
    globally_outstanding: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class FailedCheckpoint:
    """A checkpoint that was aborted, or a request that was not met (then `checkpoint_id` is 0)."""

    checkpoint_id: CheckpointId
    attempt: AttemptId
    kind: CheckpointKind
    label: str
    request_id: str
    reason: FailureReason
    message: str
    time_ms: int


@dataclass(frozen=True, slots=True)
class JobDescription:
    """One job. Before its first attempt, `attempt` and `parallelism` are 0 and `settings` is None.

    `phase` and `problem` (why it failed, ended or is fenced; "" else) are for people. `kept` and `failures` are oldest
    first; `failures` holds the last ten, and both counters count, since this coordinator loaded the job. `input_notes`
    are of what is hidden from the current attempt, or not read by it, for people.
    """

    job: str
    phase: str
    problem: str
    attempt: AttemptId
    parallelism: int
    settings: CheckpointSettings | None
    restored: CheckpointId
    started_ms: int
    stop_requested: bool
    subtasks: tuple[SubtaskDescription, ...]
    in_flight: tuple[CheckpointInFlight, ...]
    queued: tuple[QueuedRequest, ...]
    kept: tuple[KeptCheckpoint, ...]
    failures: tuple[FailedCheckpoint, ...]
    completed: int
    failed: int
    input_notes: tuple[str, ...]

    @property
    def record_errors(self) -> tuple[RecordErrorCount, ...]:
        """The records that went wrong in the current attempt while it went on, by source."""
        return counts_in(subtask.progress.figures for subtask in self.subtasks if subtask.progress)
