"""`twopc jobs`: what runs, how far it is, and a checkpoint of it now."""

from __future__ import annotations

import json
from dataclasses import asdict

import typer

from twopc.cli.coordinator_options import CoordinatorOptions, Job, Timeout, connect, coordinator_options
from twopc.cli.job_report import headline, job_tables, jobs_table
from twopc.cli.output import Output, OutputOption
from twopc.cli.shared_options import shared_options
from twopc.cli.tables import print_tables
from twopc.cli.trigger import trigger_checkpoint
from twopc.driver.discovery import find_all
from twopc.protocol.checkpoints import CheckpointKind
from twopc.rpc.admin_client import JobSummary

app = typer.Typer(
    help="List and show jobs that run, and take a checkpoint of one.", no_args_is_help=True, add_completion=False
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
        typer.echo(json.dumps([asdict(each) for each in found]))
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

    Example: twopc jobs show late-flights --checkpoint-dir checkpoints
    """
    with options.connect_to(job) as client:
        found = client.describe(job)
    if output is Output.JSON:
        typer.echo(json.dumps(asdict(found)))
        return
    typer.echo(headline(found))
    print_tables(job_tables(found))


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


def _jobs(options: CoordinatorOptions) -> list[JobSummary]:
    if options.coordinator:
        with options.connect() as client:
            return list(client.jobs())
    found: list[JobSummary] = []
    for announcement in find_all(options.store):
        with connect(announcement) as client:
            found.extend(each for each in client.jobs() if each.job == announcement.job)
    return found
