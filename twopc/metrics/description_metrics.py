"""The metrics that a job's description holds, read when somebody scrapes. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from twopc.metrics.metric import Kind, Metric, Sample, counted, of_job, of_subtask
from twopc.protocol.figures import FIGURES
from twopc.protocol.job_description import JobDescription, KeptCheckpoint, SubtaskDescription
from twopc.protocol.messages import Progress


def _phase(job: JobDescription) -> Iterable[Sample]:
    return (((job.phase,), 1),)


def _newest(read: Callable[[KeptCheckpoint], float]) -> Callable[[JobDescription], float | None]:
    return lambda job: read(job.kept[-1]) if job.kept else None


def _pending_committables(job: JobDescription) -> Iterable[Sample]:
    every = {name for kept in job.kept for name in kept.outstanding}
    globally = {name for kept in job.kept for name in kept.globally_outstanding}
    yield ("subtask",), len(every - globally)
    yield ("global",), len(globally)


def _oldest_pending(job: JobDescription) -> float | None:
    return next((kept.triggered_ms / 1000 for kept in job.kept if kept.outstanding), None)


def _of_progress(read: Callable[[Progress], float | None]) -> Callable[[SubtaskDescription], float | None]:
    return lambda subtask: None if subtask.progress is None else read(subtask.progress)


DESCRIBED: tuple[Metric, ...] = (
    Metric("twopc_job_phase", Kind.GAUGE, "1 for the phase that the job is in.", ("phase",), _phase),
    of_job("attempt", Kind.GAUGE, "The number of the current attempt, 0 before the first.", lambda job: job.attempt),
    of_job(
        "attempt_start_timestamp_seconds",
        Kind.GAUGE,
        "When the current attempt began.",
        lambda job: job.started_ms / 1000 if job.started_ms else None,
    ),
    of_job("subtasks", Kind.GAUGE, "How many subtasks the attempt has.", lambda job: job.parallelism),
    of_job(
        "subtasks_attached",
        Kind.GAUGE,
        "How many subtasks are connected to the coordinator.",
        lambda job: sum(subtask.attached for subtask in job.subtasks),
    ),
    of_job(
        "checkpoint_interval_seconds",
        Kind.GAUGE,
        "How often a checkpoint is due.",
        lambda job: job.settings.interval_ms / 1000 if job.settings else None,
    ),
    of_job(
        "number_of_in_progress_checkpoints",
        Kind.GAUGE,
        "Checkpoints that are triggered and neither completed nor aborted.",
        lambda job: len(job.in_flight),
    ),
    of_job(
        "number_of_completed_checkpoints",
        Kind.COUNTER,
        "Checkpoints completed since the coordinator loaded the job.",
        lambda job: job.completed,
    ),
    of_job(
        "number_of_failed_checkpoints",
        Kind.COUNTER,
        "Checkpoints aborted since the coordinator loaded the job.",
        lambda job: job.failed,
    ),
    of_job(
        "last_completed_checkpoint_id",
        Kind.GAUGE,
        "The newest completed checkpoint.",
        _newest(lambda kept: kept.checkpoint_id),
    ),
    of_job(
        "last_checkpoint_completed_timestamp_seconds",
        Kind.GAUGE,
        "When all subtasks had acknowledged the newest completed checkpoint.",
        _newest(lambda kept: kept.completed_ms / 1000),
    ),
    of_job(
        "last_checkpoint_duration_seconds",
        Kind.GAUGE,
        "From the trigger of the newest completed checkpoint to its last acknowledgement.",
        _newest(lambda kept: (kept.completed_ms - kept.triggered_ms) / 1000),
    ),
    of_job(
        "last_checkpoint_size_bytes",
        Kind.GAUGE,
        "The state of all subtasks in the newest completed checkpoint.",
        _newest(lambda kept: kept.size_bytes),
    ),
    of_job(
        "last_checkpoint_restore_timestamp_seconds",
        Kind.GAUGE,
        "When the current attempt began, where it was restored from a checkpoint.",
        lambda job: job.started_ms / 1000 if job.restored else None,
    ),
    of_job("kept_checkpoints", Kind.GAUGE, "Completed checkpoints that can be restored.", lambda job: len(job.kept)),
    Metric(
        "twopc_job_pending_committables",
        Kind.GAUGE,
        "Transactions of completed checkpoints whose commit is not confirmed, by who commits them.",
        ("committer",),
        _pending_committables,
    ),
    of_job(
        "oldest_pending_committable_timestamp_seconds",
        Kind.GAUGE,
        "When the oldest kept checkpoint with a commit that is not confirmed was triggered.",
        _oldest_pending,
    ),
    of_subtask("attached", Kind.GAUGE, "Whether the subtask is connected.", lambda subtask: subtask.attached),
    of_subtask(
        "num_records_in",
        Kind.COUNTER,
        "Records read in this attempt.",
        _of_progress(lambda progress: progress.records_in),
    ),
    of_subtask(
        "num_records_out",
        Kind.COUNTER,
        "Records written in this attempt.",
        _of_progress(lambda progress: progress.records_out),
    ),
    of_subtask(
        "pending_records",
        Kind.GAUGE,
        "Records left to read, as far as known: the lag.",
        _of_progress(lambda progress: progress.lag),
    ),
    of_subtask(
        "pending_committables",
        Kind.GAUGE,
        "Transactions that the subtask has pre-committed and not committed.",
        _of_progress(lambda progress: len(progress.pending_transactions)),
    ),
    of_subtask(
        "transaction_open",
        Kind.GAUGE,
        "Whether the subtask has a transaction open.",
        _of_progress(lambda progress: progress.open_transaction is not None),
    ),
    of_subtask(
        "slow_function",
        Kind.GAUGE,
        "Whether a checkpoint waits for a function of the job's that does not return.",
        _of_progress(lambda progress: bool(progress.slow)),
    ),
    *map(counted, FIGURES),
)
