"""The events of a job, one class each, for `on_event`, views, drivers and drills. Pure.

    from twopc import events

    def on_event(event: events.Event) -> None:
        match event:
            case events.CheckpointCompleted(checkpoint_id=number, duration_ms=duration):
                print(f"checkpoint {number} completed in {duration:.0f} ms")
            case events.AttemptFailed(message=message):
                print(f"attempt {event.attempt} failed: {message}")

Use the names qualified: facts of the ledger are called the same. As JSON an event is an object that says under "event"
which class it is of: {"event": "checkpoint-completed", "job": "orders", ...}. `CoordinatorEvent` are those that the
coordinator publishes, to everyone who watches; `DriverEvent` are what the driver of a run adds to them, in one stream.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from twopc.protocol.checkpoints import CheckpointKind, FailureReason
from twopc.protocol.codec import tag_of
from twopc.protocol.ids import AttemptId, CheckpointId, SubtaskIndex
from twopc.protocol.messages import Progress
from twopc.protocol.record_errors import RecordErrorKind


@dataclass(frozen=True, slots=True)
class JobEvent:
    """One thing that happened. `time_ms` is Unix milliseconds, by the clock of its sender."""

    TAG: ClassVar[str] = "event"

    job: str
    attempt: AttemptId
    time_ms: int

    @property
    def name(self) -> str:
        """The name of its class in JSON and in logs."""
        kind: type = type(self)
        return tag_of(kind)


@dataclass(frozen=True, slots=True, kw_only=True)
class SubtaskEvent(JobEvent):
    """An event of one subtask."""

    subtask: SubtaskIndex


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointEvent(JobEvent):
    """An event of a checkpoint as a whole; `label` and `request_id` are its requester's."""

    checkpoint_id: CheckpointId
    kind: CheckpointKind
    label: str = ""
    request_id: str = ""

    @property
    def final(self) -> bool:
        """Whether the job ends with it."""
        return self.kind.ends_job


@dataclass(frozen=True, slots=True, kw_only=True)
class JobStatus(JobEvent):
    """The status of the job when somebody starts to watch: its newest completed checkpoint (0: none) and its phase."""

    checkpoint_id: CheckpointId
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptStarted(JobEvent):
    """A new attempt owns the job. `restored` is the checkpoint that it starts from, 0 for none.

    `restart`: it goes on where an attempt of the same run failed.
    """

    restored: CheckpointId
    restart: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class SubtaskAttached(SubtaskEvent):
    """A subtask has connected to the coordinator, from this process."""

    pid: int
    host: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SubtaskDetached(SubtaskEvent):
    """A subtask's connection has ended; it may attach again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SubtaskProgress(SubtaskEvent):
    """The progress of a subtask, every half second."""

    progress: Progress


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordFailed(SubtaskEvent):
    """The first record of its kind in this attempt went wrong; the job goes on, by the policy of its source."""

    error: RecordErrorKind


@dataclass(frozen=True, slots=True, kw_only=True)
class EndOfInput(SubtaskEvent):
    """A subtask has read its bounded input to the end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointTriggered(CheckpointEvent):
    """Every subtask is asked for its part of a checkpoint."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointAcknowledged(SubtaskEvent):
    """A subtask has pre-committed and stored its snapshot, in `duration_ms`; its data loop paused for `pause_ms`."""

    checkpoint_id: CheckpointId
    duration_ms: float
    pause_ms: float


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointDeclined(SubtaskEvent):
    """A subtask can't take its part of a checkpoint; the checkpoint is aborted for it."""

    checkpoint_id: CheckpointId
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointCompleted(CheckpointEvent):
    """The completion record is durable: the checkpoint will be committed. `duration_ms` is since the trigger."""

    duration_ms: float


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointAborted(CheckpointEvent):
    """A checkpoint will not complete. Without a `checkpoint_id` (0) it is a request that was never triggered."""

    reason: FailureReason
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointCommitted(SubtaskEvent):
    """A subtask has committed all that it had pre-committed up to this checkpoint."""

    checkpoint_id: CheckpointId


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointConfirmed(JobEvent):
    """Every subtask has committed the checkpoint, and that is durable: `duration_ms` after it completed."""

    checkpoint_id: CheckpointId
    duration_ms: float


@dataclass(frozen=True, slots=True, kw_only=True)
class LossSettled(JobEvent):
    """Transactions of this checkpoint are lost, and it is decided what becomes of them."""

    checkpoint_id: CheckpointId
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RescaleRequested(JobEvent):
    """Somebody wants the job to run with so many subtasks: after the next checkpoint that completes behind `after`."""

    parallelism: int
    after: CheckpointId
    request_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RescaleRefused(JobEvent):
    """So many subtasks can't run where the job runs; it goes on as it is."""

    message: str
    request_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptFailed(JobEvent):
    """The attempt has failed, because of this subtask where one is named. `error_type` is a class of twopc.errors."""

    message: str
    error_type: str = ""
    restartable: bool = False
    subtask: SubtaskIndex | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptFenced(JobEvent):
    """Another run, or another coordinator, owns the job now; nothing is lost."""

    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class JobFinished(JobEvent):
    """The final checkpoint is committed everywhere: the job is over."""

    checkpoint_id: CheckpointId
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class HostStarting(JobEvent):
    """The host of the subtasks has something to start first that takes long."""

    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingForHost(JobEvent):
    """Subtasks can't start yet: the host has no room for them."""

    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointRestored(JobEvent):
    """An attempt starts from this checkpoint. `starts` is where each split is read on, for people."""

    checkpoint_id: CheckpointId
    starts: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NewInputFound(JobEvent):
    """There is more to read: after the next completed checkpoint, a new attempt reads these splits too (for people)."""

    splits: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NewInputRefused(JobEvent):
    """There is more to read, but this job can't: it goes on with what it reads."""

    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class InputHidden(JobEvent):
    """There is more in a split than can be read now: `message` says what hides it (for people)."""

    split: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionResumed(SubtaskEvent):
    """Recovery has committed a transaction that the attempt before had pre-committed for a completed checkpoint."""

    checkpoint_id: CheckpointId
    transaction: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionAborted(JobEvent):
    """Recovery has aborted a transaction that the attempt before had left open."""

    transaction: str


CoordinatorEvent = (
    JobStatus
    | AttemptStarted
    | SubtaskAttached
    | SubtaskDetached
    | SubtaskProgress
    | RecordFailed
    | EndOfInput
    | CheckpointTriggered
    | CheckpointAcknowledged
    | CheckpointDeclined
    | CheckpointCompleted
    | CheckpointAborted
    | CheckpointCommitted
    | CheckpointConfirmed
    | LossSettled
    | RescaleRequested
    | RescaleRefused
    | AttemptFailed
    | AttemptFenced
    | JobFinished
)
DriverEvent = (
    HostStarting
    | WaitingForHost
    | CheckpointRestored
    | NewInputFound
    | NewInputRefused
    | InputHidden
    | TransactionResumed
    | TransactionAborted
)
Event = CoordinatorEvent | DriverEvent
