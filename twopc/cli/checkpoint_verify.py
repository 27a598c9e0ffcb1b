"""`twopc checkpoints verify`: whether the checkpoints that are kept are whole."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Annotated

import typer

from twopc.checkpoints.archive import opened
from twopc.checkpoints.damage import verdict
from twopc.checkpoints.files import examine
from twopc.checkpoints.findings import Examination
from twopc.cli.checkpoint_options import CheckpointDir, JobName
from twopc.cli.completion import checkpoint_names
from twopc.cli.output import Output, OutputOption
from twopc.cli.tables import print_tables, size_text, table
from twopc.errors import CheckpointCorrupted, ConfigurationError
from twopc.storage.open import open_store
from twopc.storage.store import jobs_in


def verify(
    checkpoint: Annotated[
        str | None,
        typer.Argument(
            help="An id, a label, a path, an archive; all that are kept unless given.", autocompletion=checkpoint_names
        ),
    ] = None,
    checkpoint_dir: CheckpointDir = "checkpoints",
    job: JobName = None,
    output: OutputOption = Output.TEXT,
) -> None:
    """Read every file of the checkpoints, and compare it with what was written down when it was stored.

    Names each file that is missing, truncated, damaged, foreign (of another job, checkpoint or program) or of a newer
    format, and exits with 5 then. Counts the files that crashes left and no checkpoint names; a job deletes those after
    its next checkpoint. Needs no broker and no coordinator, and is safe beside a running job.

    \b
    Examples: twopc checkpoints verify --checkpoint-dir checkpoints
              twopc checkpoints verify before-1.2 --job late-flights -o json
              twopc checkpoints verify backup.tar
    """
    root = open_store(checkpoint_dir)
    if checkpoint is None:
        names = [job] if job is not None else jobs_in(root)
        if not names:
            raise ConfigurationError(f"in the checkpoint folder {root.place()} there is no job: see --checkpoint-dir")
        examined, where, number = [examine(root, name) for name in names], root, None
    else:
        with opened(checkpoint, root, job) as located:
            where, number = located.root, located.checkpoint_id
            examined = [examine(where, located.job, number)]
    if output is Output.JSON:
        typer.echo(json.dumps([asdict(examination) for examination in examined]))
    else:
        _print(examined)
    damages = [verdict(examination, where, number) for examination in examined if examination.findings]
    if damages:
        raise CheckpointCorrupted("; ".join(map(str, damages)))


def _print(examined: list[Examination]) -> None:
    heads = ("job", "checkpoints", "files", "size", "wrong", "left over")
    rows = [
        (
            examination.job,
            ", ".join(map(str, examination.checkpoints)) or "none",
            f"{examination.files:,}",
            size_text(examination.size_bytes),
            str(len(examination.findings) or "nothing"),
            str(len(examination.left_over) or "nothing"),
        )
        for examination in examined
    ]
    print_tables([table(None, heads, rows)])
    wrong = [
        (finding.file, finding.problem, finding.message) for examination in examined for finding in examination.findings
    ]
    if wrong:
        print_tables([table("Wrong files", ("file", "is", "because"), wrong)])
