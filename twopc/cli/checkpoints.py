"""`twopc checkpoints`: look at what a checkpoint folder holds. Reads only; safe beside a running job."""

from __future__ import annotations

import json
from enum import StrEnum
from pathlib import Path
from typing import Annotated, NamedTuple

import typer

from twopc.checkpoints import CheckpointEntry, JobCheckpoints, find_checkpoint, jobs, read_job
from twopc.cli.checkpoint_report import describe, detail_tables, loss_table, summarise, summary_table
from twopc.cli.tables import print_tables
from twopc.errors import CheckpointCorrupted, ConfigurationError
from twopc.protocol.ids import CheckpointId
from twopc.protocol.layout import checkpoint_of_folder

app = typer.Typer(help="List and show completed checkpoints. Changes nothing.", no_args_is_help=True)


class Output(StrEnum):
    """How the answer is written."""

    TABLE = "table"
    JSON = "json"


class _Wanted(NamedTuple):
    root: Path
    job: str
    checkpoint: CheckpointId | None


CheckpointDir = Annotated[
    Path,
    typer.Option("--checkpoint-dir", envvar="TWOPC_CHECKPOINT_DIR", help="The folder that holds the checkpoints."),
]
JobName = Annotated[str | None, typer.Option("--job", help="The job; can be left out where there is only one.")]
OutputFormat = Annotated[Output, typer.Option("--output", "-o", help="How to write the answer.")]


@app.command(name="list")
def list_checkpoints(
    checkpoint_dir: CheckpointDir = Path("checkpoints"),
    job: Annotated[str | None, typer.Option("--job", help="Only this job.")] = None,
    output: OutputFormat = Output.TABLE,
) -> None:
    """List the completed checkpoints of one job or of all jobs, oldest first.

    "outstanding" counts transactions that are pre-committed for good and not yet confirmed as committed: the running
    job commits them, or its next start.

    Example: twopc checkpoints list --checkpoint-dir checkpoints -o json
    """
    root = _existing(checkpoint_dir)
    names = [job] if job is not None else jobs(root)
    found = [read_job(root, name) for name in names]
    summaries = [summarise(each.job, entry) for each in found for entry in each.completed]
    if output is Output.JSON:
        typer.echo(json.dumps(summaries))
    elif summaries:
        print_tables([summary_table(summaries)])
    else:
        typer.echo(f"no completed checkpoint in {root}; jobs there: {', '.join(names) or 'none'}")
    damages = [entry.damage for each in found for entry in each.completed if entry.damage]
    if damages:
        raise CheckpointCorrupted("; ".join(damages))


@app.command()
def show(
    checkpoint: Annotated[str, typer.Argument(help='The id, "latest", or the path of a chk-<id> folder.')],
    checkpoint_dir: CheckpointDir = Path("checkpoints"),
    job: JobName = None,
    output: OutputFormat = Output.TABLE,
) -> None:
    """Show one completed checkpoint: positions, transactions and state of every subtask.

    Example: twopc checkpoints show latest --checkpoint-dir checkpoints
    """
    wanted = _wanted(checkpoint, checkpoint_dir, job)
    entry = _entry(read_job(wanted.root, wanted.job), wanted)
    if entry.metadata is None:
        raise CheckpointCorrupted(entry.damage)
    description = describe(wanted.job, entry, entry.metadata)
    if output is Output.JSON:
        typer.echo(json.dumps(description))
    else:
        print_tables(
            [
                summary_table([description]),
                *detail_tables(description["snapshots"]),
                *loss_table(description["losses"]),
            ]
        )


def _existing(checkpoint_dir: Path) -> Path:
    if not checkpoint_dir.is_dir():
        raise ConfigurationError(f"there is no checkpoint folder {checkpoint_dir}: name it with --checkpoint-dir")
    return checkpoint_dir


def _wanted(checkpoint: str, checkpoint_dir: Path, job: str | None) -> _Wanted:
    """Find out which checkpoint of which job is meant; a path names both."""
    folder = Path(checkpoint)
    in_folder = checkpoint_of_folder(folder.name)
    if in_folder is not None and len(folder.parts) > 1:
        home = folder.resolve().parent
        if job not in (None, home.name):
            raise ConfigurationError(f"{checkpoint} is a checkpoint of job {home.name!r}, and --job says {job!r}")
        return _Wanted(_existing(home.parent), home.name, in_folder)
    number = checkpoint_of_folder(f"chk-{checkpoint.removeprefix('chk-')}")
    if number is None and checkpoint != "latest":
        raise ConfigurationError(
            f'{checkpoint!r} names no checkpoint: give an id, "latest", or the path of a chk-<id> folder'
        )
    return _Wanted(_existing(checkpoint_dir), job or _only_job(checkpoint_dir), number)


def _only_job(checkpoint_dir: Path) -> str:
    found = jobs(checkpoint_dir)
    if len(found) != 1:
        which = f"there are {len(found)} jobs ({', '.join(found)}): name one with --job" if found else "there is no job"
        raise ConfigurationError(f"in the checkpoint folder {checkpoint_dir} {which}")
    return found[0]


def _entry(found: JobCheckpoints, wanted: _Wanted) -> CheckpointEntry:
    if wanted.checkpoint is not None:
        return find_checkpoint(found, wanted.checkpoint)
    if not found.completed:
        raise ConfigurationError(f"job {found.job!r} in {wanted.root} has no completed checkpoint yet")
    return found.completed[-1]
