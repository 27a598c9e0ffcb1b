"""The options that the commands of `twopc checkpoints` share."""

from __future__ import annotations

from typing import Annotated

import typer

from twopc.cli.completion import checkpoint_names, job_names
from twopc.cli.setting_options import Meaning, option_of

CheckpointDir = Annotated[
    str,
    option_of("checkpoint_dir", Meaning("The checkpoints' folder or URL.")),
]
Checkpoint = Annotated[
    str,
    typer.Argument(
        help='An id, a label, "latest", or the path of a chk-<id> folder, of a copy, or of an archive.',
        autocompletion=checkpoint_names,
    ),
]
JobName = Annotated[
    str | None,
    typer.Option("--job", help="The job; can be left out where there is only one.", autocompletion=job_names),
]
