"""The kinds of checkpoints, the reasons for which one fails, and the names that people give one.

Kinds and reasons are closed sets, with Flink's names.
"""

from __future__ import annotations

from enum import StrEnum

from twopc.errors import ConfigurationError
from twopc.protocol.ids import checked_name
from twopc.protocol.layout import checkpoint_of_folder

LATEST = "latest"
"""Names the newest completed checkpoint, wherever one can be named."""

NONE = "none"
"""Names no checkpoint, where a start asks for one."""


class CheckpointKind(StrEnum):
    """The kind of a checkpoint; the value is the name in files and on the wire."""

    PERIODIC = "periodic"
    MANUAL = "manual"
    SAVEPOINT = "savepoint"
    FINAL = "final"
    FINAL_SAVEPOINT = "final-savepoint"

    @property
    def ends_job(self) -> bool:
        """Whether nothing is read after it."""
        return self in (CheckpointKind.FINAL, CheckpointKind.FINAL_SAVEPOINT)

    @property
    def is_savepoint(self) -> bool:
        """Whether it is kept until a person disposes of it."""
        return self in (CheckpointKind.SAVEPOINT, CheckpointKind.FINAL_SAVEPOINT)


class FailureReason(StrEnum):
    """The reason why a checkpoint was aborted, or a request not met; named as in Flink's CheckpointFailureReason.

    Of Flink's, those are here that can occur. MINIMUM_TIME_BETWEEN_CHECKPOINTS can't: periodic checkpoints are not
    asked for and refused, they are scheduled after the pause.
    """

    CHECKPOINT_EXPIRED = "CHECKPOINT_EXPIRED"
    CHECKPOINT_DECLINED = "CHECKPOINT_DECLINED"
    CHECKPOINT_SUBSUMED = "CHECKPOINT_SUBSUMED"
    IO_EXCEPTION = "IO_EXCEPTION"
    FINALIZE_CHECKPOINT_FAILURE = "FINALIZE_CHECKPOINT_FAILURE"
    TOO_MANY_CHECKPOINT_REQUESTS = "TOO_MANY_CHECKPOINT_REQUESTS"
    NOT_ALL_REQUIRED_TASKS_RUNNING = "NOT_ALL_REQUIRED_TASKS_RUNNING"
    TASK_FAILURE = "TASK_FAILURE"
    JOB_FAILURE = "JOB_FAILURE"
    CHECKPOINT_COORDINATOR_SHUTDOWN = "CHECKPOINT_COORDINATOR_SHUTDOWN"
    CHECKPOINT_COORDINATOR_SUSPEND = "CHECKPOINT_COORDINATOR_SUSPEND"

    @property
    def meaning(self) -> str:
        return _MEANINGS[self]

    @property
    def counts(self) -> bool:
        """Whether it counts towards the tolerable failures.

        As in Flink, where the checkpoint itself could not be taken; and, other than in Flink, where it could not be
        finalised: a coordinator that can't store completions would let the job run for ever without output.
        """
        return self in _COUNTED


_MEANINGS = {
    FailureReason.CHECKPOINT_EXPIRED: "not all subtasks acknowledged within the checkpoint time-out",
    FailureReason.CHECKPOINT_DECLINED: "a subtask could not take its part",
    FailureReason.CHECKPOINT_SUBSUMED: "a later checkpoint completed first",
    FailureReason.IO_EXCEPTION: "the coordinator could not store its id",
    FailureReason.FINALIZE_CHECKPOINT_FAILURE: "the coordinator could not store that it is completed",
    FailureReason.TOO_MANY_CHECKPOINT_REQUESTS: "too many requests were waiting",
    FailureReason.NOT_ALL_REQUIRED_TASKS_RUNNING: "not all subtasks attached within the checkpoint time-out",
    FailureReason.TASK_FAILURE: "a subtask failed, and the attempt with it",
    FailureReason.JOB_FAILURE: "the attempt failed",
    FailureReason.CHECKPOINT_COORDINATOR_SHUTDOWN: "the attempt ended",
    FailureReason.CHECKPOINT_COORDINATOR_SUSPEND: "another attempt, or another coordinator, owns the job now",
}

_COUNTED = frozenset(
    {
        FailureReason.CHECKPOINT_EXPIRED,
        FailureReason.CHECKPOINT_DECLINED,
        FailureReason.IO_EXCEPTION,
        FailureReason.FINALIZE_CHECKPOINT_FAILURE,
    }
)


def checked_label(label: str) -> str:
    """Return a label by which a checkpoint can be found again; raise ConfigurationError for one that means another."""
    checked_name("label", label)
    if label in (LATEST, NONE) or checkpoint_of_folder(f"chk-{label.removeprefix('chk-')}") is not None:
        raise ConfigurationError(f"label {label!r} can't be used: where a checkpoint is named, it means another one")
    return label
