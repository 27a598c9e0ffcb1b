"""Takes a checkpoint that a command asks for, and tells what became of it."""

from __future__ import annotations

import json
from dataclasses import asdict

import typer

from twopc.cli.dial import Door, wait_seconds
from twopc.cli.output import Output
from twopc.errors import CheckpointDeclined
from twopc.protocol.checkpoints import CheckpointKind
from twopc.protocol.layout import checkpoint_folder


def ask_for_checkpoint(door: Door, job: str, kind: CheckpointKind, label: str, timeout: str, output: Output) -> None:
    """Print the outcome; raise CheckpointDeclined if there is no checkpoint."""
    seconds = wait_seconds(timeout)
    with door.open_for(job) as client:
        outcome = client.checkpoint(job, kind, label=label, timeout=seconds)
    folder = f"{job}/{checkpoint_folder(outcome.checkpoint_id)}" if outcome.completed else ""
    if output is Output.JSON:
        typer.echo(json.dumps({"job": job, "kind": kind, "label": label, "folder": folder, **asdict(outcome)}))
    elif outcome.completed:
        called = f" {label!r}" if label else ""
        typer.echo(f"{kind}{called}: checkpoint {outcome.checkpoint_id} completed in {outcome.duration_ms:.0f} ms")
        typer.echo(f"{folder}, under the checkpoint folder")
    if not outcome.completed:
        what = f"checkpoint {outcome.checkpoint_id}" if outcome.checkpoint_id else f"the {kind}"
        meaning = f"{outcome.reason} ({outcome.reason.meaning})" if outcome.reason else "no reason was given"
        raise CheckpointDeclined(f"{what} of job {job!r} was aborted: {meaning}: {outcome.message}")
