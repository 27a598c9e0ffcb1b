"""`twopc jobs history`: what became of a job's last checkpoints and attempts."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict

import typer
from rich.table import Table

from twopc.checkpoints.catalog import read_history
from twopc.cli.checkpoint_options import CheckpointDir
from twopc.cli.coordinator_options import Job
from twopc.cli.output import Output, OutputOption
from twopc.cli.tables import moment, print_tables, size_text, table
from twopc.protocol.history import History
from twopc.protocol.outcomes import PastAttempt, PastCheckpoint
from twopc.storage.open import open_store


def history(
    job: Job,
    checkpoint_dir: CheckpointDir = "checkpoints",
    output: OutputOption = Output.TEXT,
) -> None:
    """Show what became of the last hundred checkpoints and attempts of a job, oldest first, with times and reasons.

    It is read from the job's ledger: no coordinator is asked, and what happened under earlier ones is there too. That
    a checkpoint was aborted is stored with the next one, or when its attempt is over; of one whose coordinator was
    killed before that it is "not known".

    Example: twopc jobs history late-flights --checkpoint-dir checkpoints
    """
    found = read_history(open_store(checkpoint_dir), job)
    if output is Output.JSON:
        typer.echo(json.dumps({"job": job, **asdict(found)}))
        return
    print_tables(_tables(found))


def _tables(found: History) -> Iterator[Table]:
    yield table(
        "Attempts",
        ("attempt", "began", "lasted", "subtasks", "from checkpoint", "outcome", "reason"),
        map(_attempt, found.attempts),
    )
    yield table(
        "Checkpoints",
        ("id", "attempt", "kind", "label", "triggered", "took", "size", "outcome", "reason"),
        map(_checkpoint, found.checkpoints),
    )


def _attempt(past: PastAttempt) -> Iterable[str]:
    lasted = f"{(past.ended_ms - past.started_ms) / 1000:,.1f} s" if past.ended_ms else ""
    restored = str(past.restored or "")
    return (
        str(past.attempt),
        moment(past.started_ms),
        lasted,
        str(past.parallelism),
        restored,
        past.outcome,
        past.reason,
    )


def _checkpoint(past: PastCheckpoint) -> Iterable[str]:
    took = f"{past.ended_ms - past.triggered_ms:,} ms" if past.ended_ms and past.triggered_ms else ""
    reason = f"{past.reason}: {past.message}" if past.reason and past.message else past.reason or past.message
    return (
        str(past.checkpoint_id or "-"),
        str(past.attempt),
        past.kind,
        past.label,
        moment(past.triggered_ms) if past.triggered_ms else "",
        took,
        size_text(past.size_bytes) if past.size_bytes else "",
        past.outcome,
        reason,
    )
