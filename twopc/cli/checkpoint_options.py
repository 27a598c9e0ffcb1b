"""The options that the commands of `twopc checkpoints` share."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer


class Output(StrEnum):
    """How the answer is written."""

    TABLE = "table"
    JSON = "json"


CheckpointDir = Annotated[
    Path,
    typer.Option("--checkpoint-dir", envvar="TWOPC_CHECKPOINT_DIR", help="The folder that holds the checkpoints."),
]
Checkpoint = Annotated[
    str, typer.Argument(help='An id, a label, "latest", or the path of a chk-<id> folder, of a copy, or of an archive.')
]
JobName = Annotated[str | None, typer.Option("--job", help="The job; can be left out where there is only one.")]
OutputFormat = Annotated[Output, typer.Option("--output", "-o", help="How to write the answer.")]
