"""`twopc checkpoints dispose`: let go of a savepoint, or of any checkpoint that nobody needs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

import typer

from twopc.checkpoints.reference import LocatedCheckpoint, locate
from twopc.cli.at_rest import refuse_unended, runs_here
from twopc.cli.checkpoint_options import CheckpointDir, JobName
from twopc.cli.completion import checkpoint_names
from twopc.cli.coordinator_options import (
    Coordinator,
    CoordinatorCa,
    CoordinatorCert,
    CoordinatorKey,
    CoordinatorOptions,
)
from twopc.cli.output import Output, OutputOption
from twopc.cli.token_options import TokenFile
from twopc.driver.embedded import coordinator_at_rest
from twopc.errors import ConfigurationError
from twopc.protocol.ledger_state import LedgerState
from twopc.rpc.admin_client import AdminClient
from twopc.storage.open import open_store


def dispose(
    checkpoint: Annotated[
        str, typer.Argument(help="An id, or the label of a savepoint.", autocompletion=checkpoint_names)
    ],
    checkpoint_dir: CheckpointDir = "checkpoints",
    job: JobName = None,
    killed: Annotated[
        bool, typer.Option("--killed", help="The job's last run was killed, and it runs nowhere: go on.")
    ] = False,
    coordinator: Coordinator = None,
    token_file: TokenFile = None,
    coordinator_ca: CoordinatorCa = None,
    coordinator_cert: CoordinatorCert = None,
    coordinator_key: CoordinatorKey = None,
    output: OutputOption = Output.TEXT,
) -> None:
    """Delete a savepoint, or another checkpoint, for good.

    One that a restore may still need is refused: the newest, one whose output may have to be written again, one that
    another is restored with. A file that another checkpoint shares stays.

    The coordinator does it: the one of the running job on this machine, or the one at --coordinator; for a job that has
    been stopped, one that lives for a moment.

    \b
    Examples: twopc checkpoints dispose before-1.2 --job late-flights --checkpoint-dir checkpoints
              twopc checkpoints dispose 7 --coordinator 10.0.0.5:7070 --token-file token
    """
    root = open_store(checkpoint_dir)
    located = locate(checkpoint, root, job)
    if located.root.identity != root.identity:
        raise ConfigurationError(f"{checkpoint} is in another checkpoint folder: name it with --checkpoint-dir")
    _refuse_one_of_several(located, checkpoint)
    options = CoordinatorOptions(
        coordinator, checkpoint_dir, token_file, coordinator_ca, coordinator_cert, coordinator_key
    )
    with _coordinator(options, located.job, located.found.state, killed) as client:
        client.dispose(located.job, located.checkpoint_id)
    if output is Output.JSON:
        typer.echo(json.dumps({"job": located.job, "disposed": located.checkpoint_id}))
    else:
        typer.echo(f"{located.job}: checkpoint {located.checkpoint_id} is disposed of")


def _refuse_one_of_several(located: LocatedCheckpoint, checkpoint: str) -> None:
    """A label may stand for the newest that bears it, but not where that one is deleted for good."""
    alike = [entry.checkpoint_id for entry in located.found.completed if checkpoint and entry.label == checkpoint]
    if len(alike) > 1:
        raise ConfigurationError(
            f"{len(alike)} checkpoints of job {located.job!r} have the label {checkpoint!r}: name one by its id "
            f"({', '.join(map(str, alike))})"
        )


@contextmanager
def _coordinator(options: CoordinatorOptions, job: str, state: LedgerState, killed: bool) -> Iterator[AdminClient]:
    """Connect to the coordinator that owns the job, or to one that lives for this moment where no other does."""
    if options.coordinator or runs_here(options.store, job):
        with options.connect_to(job) as client:
            yield client
        return
    refuse_unended(job, state, killed, "name its --coordinator")
    with (
        coordinator_at_rest(options.store) as address,
        AdminClient(address.address, token=address.token) as client,
    ):
        yield client
