"""`twopc savepoint`: a checkpoint that is kept until somebody deletes it."""

from __future__ import annotations

from typing import Annotated

import typer

from twopc.cli.asking import ask_for_checkpoint
from twopc.cli.dial import Door, Job, Timeout, door_of
from twopc.cli.folding import taking
from twopc.cli.output import Output, OutputOption
from twopc.protocol.checkpoints import CheckpointKind


@taking(door=door_of)
def savepoint(
    door: Door,
    job: Job,
    label: Annotated[str, typer.Option(help="What to call it: letters, digits, '.', '_' and '-'.")] = "",
    timeout: Timeout = "1m",
    output: OutputOption = Output.TEXT,
) -> None:
    """Take a savepoint of a running job, and say where it is; exit with 1 if there is none.

    A savepoint is a checkpoint that retention never deletes. Start from it with `twopc run JOB_FILE --from ID`.

    \b
    Example:
      twopc savepoint late-flights --label before-1.2 --checkpoint-dir checkpoints
    """
    ask_for_checkpoint(door, job, CheckpointKind.SAVEPOINT, label, timeout, output)
