"""`twopc jobs`: what runs, how far it is, and a checkpoint of it now."""

from __future__ import annotations

import json
import time
from dataclasses import asdict
from typing import Annotated

import typer

from twopc.cli.coordinator_options import CoordinatorOptions, Job, Timeout, connect, coordinator_options, wait_seconds
from twopc.cli.history import history
from twopc.cli.job_delete import delete
from twopc.cli.job_report import headline, job_tables, jobs_table
from twopc.cli.output import Output, OutputOption
from twopc.cli.own_topics import own_topics, own_topics_table, own_topics_text
from twopc.cli.shared_options import shared_options
from twopc.cli.tables import print_tables
from twopc.cli.trigger import trigger_checkpoint
from twopc.driver.discovery import find_all
from twopc.protocol.checkpoints import CheckpointKind
from twopc.rpc.admin_client import JobSummary

app = typer.Typer(
    help="List, show and rescale jobs, take a checkpoint of one, see those before, and delete what a job has left.",
    no_args_is_help=True,
    add_completion=False,
)


@app.command(name="list")
@shared_options(options=coordinator_options)
def list_jobs(
    options: CoordinatorOptions,
    output: OutputOption = Output.TEXT,
) -> None:
    """List the jobs of a coordinator; or those of a checkpoint folder that run on this machine.

    \b
    Examples:
      twopc jobs list --checkpoint-dir checkpoints
      twopc jobs list --coordinator 10.0.0.5:7070 --token-file token -o json
    """
    found = _jobs(options)
    if output is Output.JSON:
        typer.echo(json.dumps([asdict(summary) for summary in found]))
    elif found:
        print_tables([jobs_table(found)])
    else:
        here = f"with checkpoints in {options.checkpoint_dir}, on this machine"
        typer.echo(f"no job {f'at {options.coordinator}' if options.coordinator else here}")


@app.command()
@shared_options(options=coordinator_options)
def show(
    options: CoordinatorOptions,
    job: Job,
    output: OutputOption = Output.TEXT,
) -> None:
    """Show where a job stands: its subtasks, and its checkpoints that are kept, in flight, waiting and failed.

    With --checkpoint-dir also the topics that it has made for itself (key_by): what they hold, and why.

    Example: twopc jobs show late-flights --checkpoint-dir checkpoints
    """
    with options.connect_to(job) as client:
        found = client.describe(job)
    # Of a coordinator elsewhere the checkpoints may be out of reach.
    topics = [] if options.coordinator else own_topics(options.store, job)
    if output is Output.JSON:
        typer.echo(json.dumps(asdict(found) | {"own_topics": [asdict(each) for each in topics]}))
        return
    typer.echo(headline(found))
    print_tables(job_tables(found))
    if topics:
        print_tables([own_topics_table(topics)])
        typer.echo(own_topics_text(job))


@app.command()
@shared_options(options=coordinator_options)
def checkpoint(
    options: CoordinatorOptions,
    job: Job,
    timeout: Timeout = "1m",
    output: OutputOption = Output.TEXT,
) -> None:
    """Take a checkpoint now, and say what became of it; exit with 1 if it was aborted.

    It is kept as long as any other. To keep one, take a savepoint: twopc savepoint JOB.

    Example: twopc jobs checkpoint late-flights --checkpoint-dir checkpoints
    """
    trigger_checkpoint(options, job, CheckpointKind.MANUAL, "", timeout, output)


@app.command()
@shared_options(options=coordinator_options)
def rescale(
    options: CoordinatorOptions,
    job: Job,
    parallelism: Annotated[int, typer.Option("-p", "--parallelism", min=1, help="How many subtasks it is to have.")],
    timeout: Timeout = "2m",
    output: OutputOption = Output.TEXT,
) -> None:
    """Have a running job go on with another number of subtasks, from a checkpoint that is taken now.

    Returns when they run; exits with 1 if they don't in time, with 2 if there is no room for them: then the job goes on
    as it is. State by key goes along. It holds for this run: the next `twopc run` has its own --parallelism.

    Example: twopc jobs rescale late-flights -p 4 --checkpoint-dir checkpoints
    """
    began = time.monotonic()
    with options.connect_to(job) as client:
        outcome = client.rescale(job, parallelism, timeout=wait_seconds(timeout))
    seconds = time.monotonic() - began
    if output is Output.JSON:
        answer = asdict(outcome) | {"job": job, "parallelism": parallelism, "seconds": round(seconds, 3)}
        typer.echo(json.dumps(answer))
    elif outcome.before == parallelism:
        typer.echo(f"{job}: runs with {parallelism} subtasks already, as attempt {outcome.attempt}")
    else:
        now = f"{parallelism} subtasks run, instead of {outcome.before}"
        typer.echo(f"{job}: {now}, from checkpoint {outcome.restored}, as attempt {outcome.attempt}; {seconds:.1f} s")


app.command()(history)
app.command()(delete)


def _jobs(options: CoordinatorOptions) -> list[JobSummary]:
    if options.coordinator:
        with options.connect() as client:
            return list(client.jobs())
    found: list[JobSummary] = []
    for announcement in find_all(options.store):
        with connect(announcement) as client:
            found.extend(job for job in client.jobs() if job.job == announcement.job)
    return found
