"""`twopc stop`: end a job with a last checkpoint, from another terminal."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Annotated

import typer

from twopc.checkpoints.damage import read_whole_ledger
from twopc.cli.coordinator_options import CoordinatorOptions, Job, Timeout, coordinator_options, wait_seconds
from twopc.cli.output import Output, OutputOption
from twopc.cli.shared_options import shared_options
from twopc.cli.trigger import how_to_start
from twopc.errors import ConfigurationError, TwoPhaseCommitError, Unavailable
from twopc.protocol.ids import NO_CHECKPOINT
from twopc.protocol.layout import checkpoint_folder
from twopc.rpc.admin_client import StopOutcome
from twopc.storage.store import CheckpointStore, jobs_in


@shared_options(options=coordinator_options)
def stop(
    options: CoordinatorOptions,
    job: Job,
    savepoint: Annotated[
        bool, typer.Option("--savepoint", help="Keep the last checkpoint until it is disposed of.")
    ] = False,
    label: Annotated[str, typer.Option(help="What to call that savepoint: letters, digits, '.', '_' and '-'.")] = "",
    drain: Annotated[
        bool, typer.Option("--drain", help="First read to the end that the input has when this is asked.")
    ] = False,
    timeout: Timeout = "2m",
    output: OutputOption = Output.TEXT,
) -> None:
    """Stop a job: it takes a last checkpoint, commits, and ends; `twopc run` goes on from there.

    Returns when the job has ended; exits with 1 if it failed first. Without --drain it stops where it is. With it, each
    partition is read to the end that a read_committed reader sees when the job is asked, what comes later is left, and
    periodic checkpoints go on meanwhile; then open windows close and timers fire. Give it a --timeout that is long
    enough. A second `twopc stop`, without --drain, ends the draining. A job that is stopping already can't be asked for
    a savepoint or a drain any more.
    If the job fails meanwhile and restarts, it goes on stopping. Of a job that has finished before, it says so.

    \b
    Examples: twopc stop late-flights --checkpoint-dir checkpoints
              twopc stop late-flights --savepoint --label before-1.2 --checkpoint-dir checkpoints
              twopc stop late-flights --drain --timeout 10m --checkpoint-dir checkpoints
    """
    seconds = wait_seconds(timeout)
    try:
        with options.connect_to(job) as client:
            outcome = client.stop(job, savepoint=savepoint, label=label, drain=drain, timeout=seconds)
    except (ConfigurationError, Unavailable) as error:
        if options.coordinator or savepoint or label or drain:
            raise
        outcome = _ended_before(options.store, job, error)
    if output is Output.JSON:
        typer.echo(json.dumps({"job": job, "savepoint": savepoint, "label": label, "drain": drain, **asdict(outcome)}))
    elif outcome.finished:
        kept = f", and kept as a savepoint{f' {label!r}' if label else ''}" if savepoint else ""
        typer.echo(f"{job}: stopped; checkpoint {outcome.checkpoint_id} is the last{kept}")
        if savepoint:
            typer.echo(how_to_start(f"{job}/{checkpoint_folder(outcome.checkpoint_id)}", outcome.checkpoint_id))
    if not outcome.finished:
        raise TwoPhaseCommitError(f"job {job!r} did not stop in order: {outcome.message}")


def _ended_before(root: CheckpointStore, job: str, unreached: ConfigurationError | Unavailable) -> StopOutcome:
    """Return how a job ended whose coordinator is gone with it, as its ledger has it; raise an error if it has not."""
    if job not in jobs_in(root):
        raise unreached
    state = read_whole_ledger(root, job).state
    newest = NO_CHECKPOINT if state.newest is None else state.newest.checkpoint_id
    if state.ended is not None and state.ended.finished:
        return StopOutcome(True, newest, state.ended.reason)
    if isinstance(unreached, Unavailable):
        raise unreached
    last = "has not ended in order" if state.ended is None else f"has ended: {state.ended.reason}"
    raise ConfigurationError(
        f"{unreached}. By the ledger in {root.within(job).place()} its last attempt, {state.current}, {last}; if "
        "it runs nowhere, nothing is to be stopped, and the next start goes on from its newest checkpoint "
        f"({newest or 'none'})"
    ) from unreached
