"""The metrics that count a job's events, from when this process hears them."""

from __future__ import annotations

from typing import Final

from prometheus_client import CollectorRegistry, Counter, Histogram

from twopc import errors, events
from twopc.metrics.metric import JOB

DURATIONS: Final = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)
PAUSES: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)


class EventCounts:
    """Any thread may `note`. An event that nobody told of, because a stream broke, is not counted."""

    def __init__(self, registry: CollectorRegistry) -> None:
        def counter(name: str, text: str, *labels: str) -> Counter:
            return Counter(f"twopc_job_{name}", text, [JOB, *labels], registry=registry)

        def seconds(name: str, text: str, buckets: tuple[float, ...]) -> Histogram:
            return Histogram(f"twopc_{name}_seconds", text, [JOB], registry=registry, buckets=buckets)

        self._restarts = counter("num_restarts", "Attempts that a run has started behind another one.")
        self._failed = counter(
            "attempts_failed", "Attempts that a subtask or the coordinator said had failed.", "error_type"
        )
        self._aborted = counter("checkpoint_failures", "Checkpoints that were aborted, by reason.", "reason")
        self._losses = counter("losses_settled", "Decisions about output of a completed checkpoint that is lost.")
        self._resumed = counter("transactions_resumed", "Transactions that recovery has committed.")
        self._cleared = counter("transactions_aborted", "Transactions left open that recovery has aborted.")
        self._duration = seconds("job_checkpoint_duration", "From a checkpoint's trigger to its completion.", DURATIONS)
        self._commit = seconds("job_commit_duration", "From its completion until all is durably committed.", DURATIONS)
        self._acknowledged = seconds(
            "subtask_checkpoint_duration", "From when a subtask takes up a checkpoint to when it is stored.", DURATIONS
        )
        self._pause = seconds("subtask_checkpoint_pause", "How long a subtask's data loop stood still for one.", PAUSES)

    def note(self, event: events.Event) -> None:
        """Take in what happened."""
        job = event.job
        match event:
            case events.AttemptStarted():
                self._restarts.labels(job).inc(event.restart)
            case events.AttemptFailed():
                self._failed.labels(job, _class_of(event)).inc()
            case events.CheckpointCompleted():
                self._duration.labels(job).observe(event.duration_ms / 1000)
            case events.CheckpointAborted():
                self._aborted.labels(job, event.reason).inc()
            case events.CheckpointAcknowledged():
                self._acknowledged.labels(job).observe(event.duration_ms / 1000)
                self._pause.labels(job).observe(event.pause_ms / 1000)
            case events.CheckpointConfirmed():
                self._commit.labels(job).observe(event.duration_ms / 1000)
            case events.LossSettled():
                self._losses.labels(job).inc()
            case events.TransactionResumed():
                self._resumed.labels(job).inc()
            case events.TransactionAborted():
                self._cleared.labels(job).inc()
            case _:
                pass


def _class_of(failure: events.AttemptFailed) -> str:
    """Return the class of ours that it names: what else a subtask may call it would be a label without end."""
    return failure.error_type if failure.error_type in vars(errors) else "other"
