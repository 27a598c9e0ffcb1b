"""The outcomes of checkpoints and attempts, as the ledger has them: for people only, never for a decision. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from twopc.protocol.checkpoints import CheckpointKind, FailureReason
from twopc.protocol.ids import AttemptId, CheckpointId, SubtaskIndex

MESSAGE_MAX = 500
"""Characters of what is said of one of them."""


class CheckpointOutcome(StrEnum):
    """The outcome of a checkpoint; `NOT_KNOWN`: its coordinator ended before it could store that."""

    IN_FLIGHT = "in flight"
    COMPLETED = "completed"
    ABORTED = "aborted"
    NOT_KNOWN = "not known"


class AttemptOutcome(StrEnum):
    """The outcome of an attempt.

    `STARTED_AGAIN`: no subtask said that it failed, and its driver has started the next one: a process was killed,
    there was more input, or another parallelism was asked for. `TAKEN_OVER`: another run did, while nothing said that
    this one had ended.
    """

    RUNNING = "running"
    FINISHED = "finished"
    FAILED = "failed"
    ENDED = "ended"
    STARTED_AGAIN = "started again"
    TAKEN_OVER = "taken over"


@dataclass(frozen=True, slots=True)
class AbortedCheckpoint:
    """A checkpoint that was aborted, or a request that was not met (then `checkpoint_id` is 0); `message` says why.

    No fact of its own: the next fact that is stored anyhow carries it.
    """

    checkpoint_id: CheckpointId
    attempt: AttemptId
    kind: CheckpointKind
    label: str
    reason: FailureReason
    message: str
    time_ms: int


@dataclass(frozen=True, slots=True)
class AttemptFailure:
    """The failure of an attempt, and the subtask that caused it, where one is known."""

    error_type: str
    message: str
    subtask: SubtaskIndex | None
    time_ms: int


@dataclass(frozen=True, slots=True)
class PastCheckpoint:
    """One checkpoint. Times are Unix milliseconds, 0 where they are not known; `reason` is that of an abort."""

    checkpoint_id: CheckpointId
    attempt: AttemptId
    kind: CheckpointKind
    triggered_ms: int
    outcome: CheckpointOutcome = CheckpointOutcome.IN_FLIGHT
    ended_ms: int = 0
    label: str = ""
    size_bytes: int = 0
    reason: FailureReason | None = None
    message: str = ""


@dataclass(frozen=True, slots=True)
class PastAttempt:
    """One attempt. `restored` is the checkpoint that it began from, 0 for none; `reason` says how it ended."""

    attempt: AttemptId
    parallelism: int
    restored: CheckpointId
    started_ms: int
    outcome: AttemptOutcome = AttemptOutcome.RUNNING
    ended_ms: int = 0
    reason: str = ""
