"""`twopc checkpoints copy`: one checkpoint in a folder or an archive of its own."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from twopc.checkpoints.archive import copy_to, opened
from twopc.checkpoints.reference import LocatedCheckpoint
from twopc.cli.checkpoint_options import Checkpoint, CheckpointDir, JobName
from twopc.cli.output import Output, OutputOption
from twopc.storage.open import open_store


def copy(
    checkpoint: Checkpoint,
    target: Annotated[
        str, typer.Argument(help="A folder, or a file whose name ends with .tar; it must not exist yet.")
    ],
    checkpoint_dir: CheckpointDir = "checkpoints",
    job: JobName = None,
    output: OutputOption = Output.TEXT,
) -> None:
    """Pack one checkpoint, with all that restoring it needs, into a folder or an archive of its own.

    Every byte is verified as it is copied, and the original may be deleted afterwards. The copy is a checkpoint folder
    itself: `twopc run JOB_FILE --from TARGET` goes on from it, on another machine and with another --checkpoint-dir.

    \b
    Examples: twopc checkpoints copy before-1.2 /backup/late-flights-1.2 --job late-flights
              twopc checkpoints copy latest late-flights.tar
    """
    with opened(checkpoint, open_store(checkpoint_dir), job) as located:
        copy_to(located, target)
        _report(located, target, output)


def _report(located: LocatedCheckpoint, target: str, output: Output) -> None:
    outstanding = sorted(located.entry.completed.outstanding)
    if output is Output.JSON:
        answer = {"job": located.job, "checkpoint_id": located.checkpoint_id, "target": target}
        typer.echo(json.dumps(answer | {"outstanding": outstanding}))
        return
    typer.echo(f"{located.job}: checkpoint {located.checkpoint_id} is copied to {target}, and verified")
    if outstanding:
        typer.echo(
            f"{len(outstanding)} of its transactions are not confirmed as committed yet: whoever restores the copy "
            "settles them with the same brokers. To have none, copy it again in a moment"
        )
