"""`twopc checkpoints`: look at what a checkpoint folder holds, and keep it. Safe beside a running job."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from twopc.checkpoints.archive import opened
from twopc.checkpoints.damage import read_whole_ledger, refusal
from twopc.cli.checkpoint_copy import copy
from twopc.cli.checkpoint_dispose import dispose
from twopc.cli.checkpoint_options import Checkpoint, CheckpointDir, JobName
from twopc.cli.checkpoint_report import (
    describe,
    detail_tables,
    loss_table,
    standing_table,
    state_table,
    stood,
    summarise,
    summary_table,
)
from twopc.cli.checkpoint_verify import verify
from twopc.cli.completion import job_names
from twopc.cli.kafka_options import KafkaConfig
from twopc.cli.output import Output, OutputOption
from twopc.cli.state_sizes import state_sizes
from twopc.cli.tables import print_tables
from twopc.cli.times_report import time_tables
from twopc.errors import CheckpointCorrupted, ConfigurationError
from twopc.kafka.clients.config_file import read_kafka_config
from twopc.storage.open import open_store
from twopc.storage.store import CheckpointStore, jobs_in

app = typer.Typer(
    help="List, show, verify, copy and dispose of completed checkpoints.", no_args_is_help=True, add_completion=False
)


@app.command(name="list")
def list_checkpoints(
    checkpoint_dir: CheckpointDir = "checkpoints",
    job: Annotated[str | None, typer.Option("--job", help="Only this job.", autocompletion=job_names)] = None,
    output: OutputOption = Output.TEXT,
) -> None:
    """List the completed checkpoints of one job or of all jobs, oldest first.

    "outstanding" counts transactions that are pre-committed for good and not yet confirmed as committed: the running
    job commits them, or its next start.

    Example: twopc checkpoints list --checkpoint-dir checkpoints -o json
    """
    root = _existing(checkpoint_dir)
    names = [job] if job is not None else jobs_in(root)
    found = [read_whole_ledger(root, name) for name in names]
    summaries = [summarise(each.job, entry) for each in found for entry in each.completed]
    if output is Output.JSON:
        typer.echo(json.dumps(summaries))
    elif summaries:
        print_tables([summary_table(summaries)])
    else:
        typer.echo(f"no completed checkpoint in {root.place()}; jobs there: {', '.join(names) or 'none'}")
    damages = [
        str(refusal(CheckpointCorrupted(entry.damage), root, each.job, entry.checkpoint_id))
        for each in found
        for entry in each.completed
        if entry.damage
    ]
    if damages:
        raise CheckpointCorrupted("; ".join(damages))


@app.command()
def show(
    checkpoint: Checkpoint,
    checkpoint_dir: CheckpointDir = "checkpoints",
    job: JobName = None,
    bootstrap_servers: Annotated[
        str | None,
        typer.Option(
            "--bootstrap-servers", "-b", help="Kafka, HOST:PORT[,...]: compare the positions with what is there."
        ),
    ] = None,
    kafka_config: KafkaConfig = None,
    states: Annotated[
        bool | None,
        typer.Option(
            "--states/--no-states",
            help="Count keys and bytes of each state, which reads all of it.",
            show_default="where the snapshots have at most 8 MiB",
        ),
    ] = None,
    output: OutputOption = Output.TEXT,
) -> None:
    """Show one completed checkpoint: times of each phase, positions, transactions and state of every subtask.

    Keys are those that there are now: of each state, whatever was written and deleted before. Where they are not
    counted, only the size of the snapshots is known.

    Of a subtask's times, "waited" is from the trigger to when its loop took it up, with the way of both messages; the
    pre-commit is part of how long the loop stood still, and writing part of storing, which goes on beside the loop.

    With --bootstrap-servers it says of each position how far behind the end it is, and whether it can still be read
    from: retention may have deleted what comes next, the topic may be another of the same name. What a state holds, key
    by key, is shown by `twopc state`.

    \b
    Examples: twopc checkpoints show latest --checkpoint-dir checkpoints
              twopc checkpoints show before-1.2 --states --bootstrap-servers 127.0.0.1:9092 -o json
    """
    with opened(checkpoint, open_store(checkpoint_dir), job) as located:
        metadata = located.metadata
        description = describe(located.job, located.entry, metadata)
        counted = state_sizes(located, metadata, states)
        description["states"] = counted.states
        if bootstrap_servers:
            from twopc.kafka.positions.offset_status import fetch_offset_statuses
            from twopc.kafka.positions.partition_position import partition_positions

            access = read_kafka_config(kafka_config)
            description["offset_statuses"] = stood(
                fetch_offset_statuses(bootstrap_servers, access, partition_positions(metadata.positions))
            )
    if output is Output.JSON:
        typer.echo(json.dumps(description))
    else:
        print_tables(
            [
                summary_table([description]),
                *time_tables(description),
                *detail_tables(description["snapshots"]),
                *loss_table(description["losses"]),
                *standing_table(description.get("offset_statuses", ())),
                *state_table(counted.states),
            ]
        )
        if counted.why_not:
            typer.echo(counted.why_not)
    if counted.damage is not None:
        raise counted.damage


def _existing(checkpoint_dir: str) -> CheckpointStore:
    root = open_store(checkpoint_dir)
    if not root.parts():
        raise ConfigurationError(
            f"nothing is stored in the checkpoint folder {root.place()}: name another with --checkpoint-dir"
        )
    return root


app.command()(verify)
app.command()(copy)
app.command()(dispose)
