"""`twopc stop`: end a job with a last checkpoint, from another terminal."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import typer

from twopc.cli.dial import (
    CheckpointDir,
    Coordinator,
    CoordinatorCa,
    CoordinatorCert,
    CoordinatorKey,
    Door,
    Job,
    Timeout,
    TokenFile,
    wait_seconds,
)
from twopc.cli.output import Output, OutputOption
from twopc.errors import TwoPhaseCommitError


def stop(
    job: Job,
    timeout: Timeout = "2m",
    checkpoint_dir: CheckpointDir = Path("checkpoints"),
    coordinator: Coordinator = None,
    token_file: TokenFile = None,
    coordinator_ca: CoordinatorCa = None,
    coordinator_cert: CoordinatorCert = None,
    coordinator_key: CoordinatorKey = None,
    output: OutputOption = Output.TEXT,
) -> None:
    """Stop a job: it takes a last checkpoint, commits, and ends; `twopc run` goes on from there.

    Returns when the job has ended; exits with 1 if it failed first.

    Example: twopc stop late-flights --checkpoint-dir checkpoints
    """
    door = Door(coordinator, checkpoint_dir, token_file, coordinator_ca, coordinator_cert, coordinator_key)
    seconds = wait_seconds(timeout)
    with door.open_for(job) as client:
        outcome = client.stop(job, timeout=seconds)
    if output is Output.JSON:
        typer.echo(json.dumps({"job": job, **asdict(outcome)}))
    elif outcome.finished:
        typer.echo(f"{job}: stopped; checkpoint {outcome.checkpoint_id} is the last")
    if not outcome.finished:
        raise TwoPhaseCommitError(f"job {job!r} did not stop in order: {outcome.message}")
