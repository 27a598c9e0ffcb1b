"""Checkpoints that people ask for: `twopc savepoint`, and what `twopc jobs checkpoint` shares with it."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Annotated

import typer

from twopc.cli.coordinator_options import CoordinatorOptions, Job, Timeout, coordinator_options, wait_seconds
from twopc.cli.output import Output, OutputOption
from twopc.cli.shared_options import shared_options
from twopc.errors import CheckpointDeclined
from twopc.protocol.checkpoints import CheckpointKind
from twopc.protocol.ids import CheckpointId
from twopc.protocol.layout import checkpoint_folder


def trigger_checkpoint(
    options: CoordinatorOptions, job: str, kind: CheckpointKind, label: str, timeout: str, output: Output
) -> None:
    """Print the outcome; raise CheckpointDeclined if there is no checkpoint."""
    seconds = wait_seconds(timeout)
    with options.connect_to(job) as client:
        outcome = client.checkpoint(job, kind, label=label, timeout=seconds)
    folder = f"{job}/{checkpoint_folder(outcome.checkpoint_id)}" if outcome.completed else ""
    if output is Output.JSON:
        typer.echo(json.dumps({"job": job, "kind": kind, "label": label, "folder": folder, **asdict(outcome)}))
    elif outcome.completed:
        called = f" {label!r}" if label else ""
        typer.echo(f"{kind}{called}: checkpoint {outcome.checkpoint_id} completed in {outcome.duration_ms:.0f} ms")
        typer.echo(how_to_start(folder, outcome.checkpoint_id))
    if not outcome.completed:
        what = f"checkpoint {outcome.checkpoint_id}" if outcome.checkpoint_id else f"the {kind}"
        meaning = f"{outcome.reason} ({outcome.reason.meaning})" if outcome.reason else "no reason was given"
        raise CheckpointDeclined(f"{what} of job {job!r} was aborted: {meaning}: {outcome.message}")


def how_to_start(folder: str, checkpoint_id: CheckpointId) -> str:
    """Where a checkpoint is, and what starts a job from it."""
    return f"it is {folder} under the checkpoint folder: twopc run JOB_FILE --from {checkpoint_id} starts from it"


@shared_options(options=coordinator_options)
def savepoint(
    options: CoordinatorOptions,
    job: Job,
    label: Annotated[str, typer.Option(help="What to call it: letters, digits, '.', '_' and '-'.")] = "",
    timeout: Timeout = "1m",
    output: OutputOption = Output.TEXT,
) -> None:
    """Take a savepoint of a running job, and say where it is; exit with 1 if there is none.

    A savepoint is a checkpoint that retention never deletes. Start from it with `twopc run JOB_FILE --from ID`.

    \b
    Example:
      twopc savepoint late-flights --label before-1.2 --checkpoint-dir checkpoints
    """
    trigger_checkpoint(options, job, CheckpointKind.SAVEPOINT, label, timeout, output)
