"""What happened to a job, as the coordinator tells drivers, views and drills."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from twopc.protocol.checkpoints import CheckpointKind, FailureReason
from twopc.protocol.ids import NO_CHECKPOINT, AttemptId, CheckpointId, SubtaskIndex
from twopc.protocol.messages import Progress

WHOLE_JOB = SubtaskIndex(-1)
"""The `subtask` of an event that is not of one subtask."""


class JobEventKind(StrEnum):
    """What events tell, a closed set; the value is the name on the wire, in files and in logs."""

    STATUS = "status"
    ATTEMPT_STARTED = "attempt-started"
    ATTACHED = "attached"
    DETACHED = "detached"
    TRIGGERED = "triggered"
    ACKNOWLEDGED = "acknowledged"
    DECLINED = "declined"
    COMPLETED = "completed"
    COMMITTED = "committed"
    CONFIRMED = "confirmed"
    LOSS_SETTLED = "loss-settled"
    ABORTED = "aborted"
    END_OF_INPUT = "end-of-input"
    FAILED = "failed"
    FENCED = "fenced"
    FINISHED = "finished"
    PROGRESS = "progress"
    STARTING = "starting"
    """This and those below are told by the driver, in the stream of the coordinator's."""
    WAITING = "waiting"
    RESTORED = "restored"
    RESUMED = "resumed"
    LINGERING_ABORTED = "lingering-aborted"


@dataclass(frozen=True, slots=True, kw_only=True)
class JobEvent:
    """One thing that happened. Times are Unix milliseconds of the coordinator's clock.

    `duration_ms`: of "completed", since the trigger; of "acknowledged", pause and storing; of "confirmed", since the
    completion. `restartable` and `error_type` belong to "failed", `pause_ms` to "acknowledged", `pid` to "attached".
    `checkpoint_kind`, `label` and `request_id` belong to "triggered", "completed", "aborted" and "declined", `reason`
    to the last two. A request that was not met is "aborted" with its `request_id` and no checkpoint.
    """

    kind: JobEventKind
    job: str
    attempt: AttemptId
    time_ms: int
    checkpoint_id: CheckpointId = NO_CHECKPOINT
    subtask: SubtaskIndex = WHOLE_JOB
    message: str = ""
    restartable: bool = False
    error_type: str = ""
    duration_ms: float = 0.0
    pid: int = 0
    progress: Progress | None = None
    pause_ms: float = 0.0
    checkpoint_kind: CheckpointKind | None = None
    label: str = ""
    request_id: str = ""
    reason: FailureReason | None = None

    @property
    def final(self) -> bool:
        return self.checkpoint_kind is not None and self.checkpoint_kind.ends_job
