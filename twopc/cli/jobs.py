"""`twopc jobs`: what runs, how far it is, and a checkpoint of it now."""

from __future__ import annotations

import json
from dataclasses import asdict

import typer

from twopc.cli.asking import ask_for_checkpoint
from twopc.cli.dial import Door, Job, Timeout, dial, door_of
from twopc.cli.folding import taking
from twopc.cli.job_report import headline, job_tables, jobs_table
from twopc.cli.output import Output, OutputOption
from twopc.cli.tables import print_tables
from twopc.driver.announcement import find_all
from twopc.protocol.checkpoints import CheckpointKind
from twopc.rpc.admin_client import JobSummary

app = typer.Typer(
    help="List and show jobs that run, and take a checkpoint of one.", no_args_is_help=True, add_completion=False
)


@app.command(name="list")
@taking(door=door_of)
def list_jobs(
    door: Door,
    output: OutputOption = Output.TEXT,
) -> None:
    """List the jobs of a coordinator; or those of a checkpoint folder that run on this machine.

    \b
    Examples:
      twopc jobs list --checkpoint-dir checkpoints
      twopc jobs list --coordinator 10.0.0.5:7070 --token-file token -o json
    """
    found = _jobs(door)
    if output is Output.JSON:
        typer.echo(json.dumps([asdict(each) for each in found]))
    elif found:
        print_tables([jobs_table(found)])
    else:
        here = f"with checkpoints in {door.checkpoint_dir}, on this machine"
        typer.echo(f"no job {f'at {door.coordinator}' if door.coordinator else here}")


@app.command()
@taking(door=door_of)
def show(
    door: Door,
    job: Job,
    output: OutputOption = Output.TEXT,
) -> None:
    """Show where a job stands: its subtasks, and its checkpoints that are kept, in flight, waiting and failed.

    Example: twopc jobs show late-flights --checkpoint-dir checkpoints
    """
    with door.open_for(job) as client:
        found = client.describe(job)
    if output is Output.JSON:
        typer.echo(json.dumps(asdict(found)))
        return
    typer.echo(headline(found))
    print_tables(job_tables(found))


@app.command()
@taking(door=door_of)
def checkpoint(
    door: Door,
    job: Job,
    timeout: Timeout = "1m",
    output: OutputOption = Output.TEXT,
) -> None:
    """Take a checkpoint now, and say what became of it; exit with 1 if it was aborted.

    It is kept as long as any other. To keep one, take a savepoint: twopc savepoint JOB.

    Example: twopc jobs checkpoint late-flights --checkpoint-dir checkpoints
    """
    ask_for_checkpoint(door, job, CheckpointKind.MANUAL, "", timeout, output)


def _jobs(door: Door) -> list[JobSummary]:
    if door.coordinator:
        with door.open() as client:
            return list(client.jobs())
    found: list[JobSummary] = []
    for announcement in find_all(door.checkpoint_dir):
        with dial(announcement) as client:
            found.extend(each for each in client.jobs() if each.job == announcement.job)
    return found
