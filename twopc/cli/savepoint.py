"""`twopc savepoint`: a checkpoint that is kept until somebody deletes it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from twopc.cli.asking import ask_for_checkpoint
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
)
from twopc.cli.output import Output, OutputOption
from twopc.protocol.checkpoints import CheckpointKind


def savepoint(
    job: Job,
    label: Annotated[str, typer.Option(help="What to call it: letters, digits, '.', '_' and '-'.")] = "",
    timeout: Timeout = "1m",
    checkpoint_dir: CheckpointDir = Path("checkpoints"),
    coordinator: Coordinator = None,
    token_file: TokenFile = None,
    coordinator_ca: CoordinatorCa = None,
    coordinator_cert: CoordinatorCert = None,
    coordinator_key: CoordinatorKey = None,
    output: OutputOption = Output.TEXT,
) -> None:
    """Take a savepoint of a running job, and say where it is; exit with 1 if there is none.

    A savepoint is a checkpoint that retention never deletes. Start from it with `twopc run JOB_FILE --from ID`.

    Example: twopc savepoint late-flights --label before-1.2 --checkpoint-dir checkpoints
    """
    door = Door(coordinator, checkpoint_dir, token_file, coordinator_ca, coordinator_cert, coordinator_key)
    ask_for_checkpoint(door, job, CheckpointKind.SAVEPOINT, label, timeout, output)
