"""The progress of a run and of its attempt, by the coordinator's events. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field

from twopc import errors, events
from twopc.driver.liveness import Liveness
from twopc.errors import Fenced, TwoPhaseCommitError
from twopc.protocol.figures import Figures, updated
from twopc.protocol.ids import NO_ATTEMPT, NO_CHECKPOINT, AttemptId, CheckpointId
from twopc.protocol.record_errors import RecordErrorCount, counts_in


@dataclass(slots=True)
class AttemptProgress:
    """The progress of one attempt, which began when `known` was the latest completed checkpoint."""

    attempt: AttemptId = NO_ATTEMPT
    known: CheckpointId = NO_CHECKPOINT
    completed: int = 0
    failure: events.AttemptFailed | events.AttemptFenced | None = None
    finished: bool = False
    records: dict[int, tuple[int, int]] = field(default_factory=dict)
    figures: dict[int, Figures | None] = field(default_factory=dict)
    liveness: Liveness = field(default_factory=Liveness)
    rescale: events.RescaleRequested | None = None

    def note(self, event: events.CoordinatorEvent, now: float) -> None:
        """Take in one event of this attempt."""
        self.liveness.note(event, now)
        match event:
            case events.CheckpointCompleted() | events.JobStatus() if event.checkpoint_id > self.known:
                # The status stands for what completed while the stream of events was broken.
                self.known = event.checkpoint_id
                self.completed += 1
            case events.AttemptFailed() | events.AttemptFenced() if self.failure is None:
                self.failure = event
            case events.RescaleRequested():
                self.rescale = event
            case events.JobFinished():
                self.finished = True
            case events.SubtaskProgress():
                self.records[event.subtask] = (event.progress.records_in, event.progress.records_out)
                self.figures[event.subtask] = updated(self.figures.get(event.subtask), event.progress.figures)


@dataclass(slots=True)
class RunProgress:
    """The progress of one run: its attempts, one after the other."""

    attempts: int = 0
    current: AttemptProgress = field(default_factory=AttemptProgress)
    completed_checkpoints: int = 0
    last_completed: CheckpointId = NO_CHECKPOINT

    def attempt_started(self, attempt: AttemptId, latest: CheckpointId) -> None:
        """From now on, only events of this attempt say how it goes; `latest` is what it has recovered from."""
        self.attempts += 1
        self.current = AttemptProgress(attempt, latest)

    def note(self, event: events.CoordinatorEvent, now: float) -> None:
        """Take in one event of the job."""
        current = self.current
        if event.attempt > current.attempt > NO_ATTEMPT:
            # Not by this driver: it would have started the attempt itself, and then this failure is of the past.
            event = _fenced_by(event, current.attempt)
        if event.attempt != current.attempt:
            return
        before = current.completed
        current.note(event, now)
        if current.completed > before:
            self.completed_checkpoints += 1
            self.last_completed = current.known

    @property
    def records_in(self) -> int:
        return sum(records for records, _ in self.current.records.values())

    @property
    def records_out(self) -> int:
        return sum(records for _, records in self.current.records.values())

    @property
    def record_errors(self) -> tuple[RecordErrorCount, ...]:
        return counts_in(self.current.figures.values())


def _fenced_by(event: events.CoordinatorEvent, attempt: AttemptId) -> events.AttemptFenced:
    """Return what the event of a greater attempt means for the one that runs here."""
    return events.AttemptFenced(
        event.job,
        attempt,
        event.time_ms,
        message=f"another run of job {event.job!r} has started attempt {event.attempt}, which takes over from attempt "
        f"{attempt} of this one: this run ends, and nothing is lost. A job can have one run at a time",
    )


def error_of(event: events.AttemptFailed | events.AttemptFenced) -> TwoPhaseCommitError:
    """Turn a reported failure into the error that the user knows by that name."""
    if isinstance(event, events.AttemptFenced):
        return Fenced(event.message)
    known = getattr(errors, event.error_type, None)
    if isinstance(known, type) and issubclass(known, TwoPhaseCommitError):
        error: TwoPhaseCommitError = known(event.message)
    else:
        error = TwoPhaseCommitError(event.message)
    error.restartable = event.restartable
    return error
