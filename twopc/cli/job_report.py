"""Jobs as tables, for people."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rich.table import Table

from twopc.cli.tables import moment, size_text, table
from twopc.protocol.job_description import JobDescription, KeptCheckpoint, SubtaskDescription
from twopc.rpc.admin_client import JobSummary


def jobs_table(jobs: Iterable[JobSummary]) -> Table:
    heads = (
        "job",
        "phase",
        "attempt",
        "subtasks attached",
        "newest checkpoint",
        "completed at",
        "records wrong",
        "problem",
    )
    return table(
        None,
        heads,
        [
            (
                job.job,
                job.phase,
                str(job.attempt or ""),
                f"{job.attached} of {job.parallelism}",
                str(job.newest_checkpoint_id or ""),
                moment(job.newest_completed_ms) if job.newest_completed_ms else "",
                f"{job.record_errors:,}" if job.record_errors else "",
                job.problem,
            )
            for job in jobs
        ],
    )


def headline(job: JobDescription) -> str:
    """A job in a line or two."""
    since = f", since {moment(job.started_ms)}" if job.started_ms else ""
    restored = f", restored from checkpoint {job.restored}" if job.restored else ""
    lines = [
        f"{job.job}: {job.phase}{' (stopping)' if job.stop_requested else ''}; attempt {job.attempt}{restored}{since}; "
        f"{job.completed} checkpoints completed and {job.failed} failed since this coordinator knows the job"
    ]
    problem = [f"problem: {job.problem}"] if job.problem else []
    return "\n".join([*lines, *problem, *(f"input: {note}" for note in job.input_notes)])


def job_tables(job: JobDescription) -> Iterator[Table]:
    yield _subtasks(job.subtasks)
    if job.record_errors:
        yield table(
            "Records that went wrong, in this attempt",
            ("source", "in", "skipped", "dead letters"),
            [
                (error.source, error.operator, f"{error.skipped:,}", f"{error.dead_letters:,}")
                for error in job.record_errors
            ],
        )
    yield _checkpoints(job)
    if job.failures:
        heads = ("id", "kind", "label", "at", "reason", "what happened")
        yield table(
            "Failed checkpoints: the last ten",
            heads,
            [
                (
                    str(failure.checkpoint_id or "-"),
                    failure.kind,
                    failure.label,
                    moment(failure.time_ms),
                    failure.reason,
                    failure.message,
                )
                for failure in job.failures
            ],
        )


def _subtasks(subtasks: Iterable[SubtaskDescription]) -> Table:
    heads = ("subtask", "process", "in", "out", "lag", "open transaction", "pre-committed", "committed up to")
    return table("Subtasks", heads, [_subtask(subtask) for subtask in subtasks])


def _subtask(subtask: SubtaskDescription) -> tuple[str, ...]:
    process = f"{subtask.pid} on {subtask.host}" if subtask.attached else "not attached"
    progress = subtask.progress
    if progress is None:
        return (str(subtask.subtask), process, "", "", "", "", "", str(subtask.committed or ""))
    return (
        str(subtask.subtask),
        process + (", at the end" if subtask.at_end else ""),
        f"{progress.records_in:,}",
        f"{progress.records_out:,}",
        "unknown" if progress.lag is None else f"{progress.lag:,}",
        progress.open_transaction or "",
        ", ".join(progress.pending_transactions),
        str(subtask.committed or ""),
    )


def _outstanding(kept: KeptCheckpoint) -> str:
    if not kept.outstanding:
        return "committed"
    globally = f", {len(kept.globally_outstanding)} of them globally" if kept.globally_outstanding else ""
    return f"{len(kept.outstanding)} transactions outstanding{globally}"


def _checkpoints(job: JobDescription) -> Table:
    kept = [
        (
            str(checkpoint.checkpoint_id),
            checkpoint.kind,
            checkpoint.label,
            f"completed at {moment(checkpoint.completed_ms)}",
            f"{checkpoint.completed_ms - checkpoint.triggered_ms:,} ms",
            size_text(checkpoint.size_bytes),
            _outstanding(checkpoint),
        )
        for checkpoint in job.kept
    ]
    in_flight = [
        (
            str(flight.checkpoint_id),
            flight.kind,
            flight.label,
            f"in flight since {moment(flight.triggered_ms)}",
            "",
            "",
            f"acknowledged by {len(flight.acknowledged)} of {job.parallelism}",
        )
        for flight in job.in_flight
    ]
    waiting = [
        ("-", request.kind, request.label, f"waiting since {moment(request.asked_ms)}", "", "", "")
        for request in job.queued
    ]
    heads = ("id", "kind", "label", "state", "duration", "size", "transactions")
    return table("Checkpoints", heads, [*kept, *in_flight, *waiting])
