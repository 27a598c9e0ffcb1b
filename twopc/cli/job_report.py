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
                each.job,
                each.phase,
                str(each.attempt or ""),
                f"{each.attached} of {each.parallelism}",
                str(each.newest_checkpoint_id or ""),
                moment(each.newest_completed_ms) if each.newest_completed_ms else "",
                f"{each.record_errors:,}" if each.record_errors else "",
                each.problem,
            )
            for each in jobs
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
            [(each.source, each.operator, f"{each.skipped:,}", f"{each.dead_letters:,}") for each in job.record_errors],
        )
    yield _checkpoints(job)
    if job.failures:
        heads = ("id", "kind", "label", "at", "reason", "what happened")
        yield table(
            "Failed checkpoints: the last ten",
            heads,
            [
                (str(each.checkpoint_id or "-"), each.kind, each.label, moment(each.time_ms), each.reason, each.message)
                for each in job.failures
            ],
        )


def _subtasks(subtasks: Iterable[SubtaskDescription]) -> Table:
    heads = ("subtask", "process", "in", "out", "lag", "open transaction", "pre-committed", "committed up to")
    return table("Subtasks", heads, [_subtask(each) for each in subtasks])


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
            str(each.checkpoint_id),
            each.kind,
            each.label,
            f"completed at {moment(each.completed_ms)}",
            f"{each.completed_ms - each.triggered_ms:,} ms",
            size_text(each.size_bytes),
            _outstanding(each),
        )
        for each in job.kept
    ]
    in_flight = [
        (
            str(each.checkpoint_id),
            each.kind,
            each.label,
            f"in flight since {moment(each.triggered_ms)}",
            "",
            "",
            f"acknowledged by {len(each.acknowledged)} of {job.parallelism}",
        )
        for each in job.in_flight
    ]
    waiting = [
        ("-", each.kind, each.label, f"waiting since {moment(each.asked_ms)}", "", "", "") for each in job.queued
    ]
    heads = ("id", "kind", "label", "state", "duration", "size", "transactions")
    return table("Checkpoints", heads, [*kept, *in_flight, *waiting])
