"""`twopc version`: what is at work here, for a person and for a bug report."""

from __future__ import annotations

import json

import typer

from twopc.cli.output import Output, OutputOption
from twopc.ui.versions import versions


def version(output: OutputOption = Output.TEXT) -> None:
    """Print the versions of twopc and of what it stands on.

    Example: twopc version -o json
    """
    found = versions()
    if output is Output.JSON:
        typer.echo(json.dumps(found))
        return
    for name, value in found.items():
        typer.echo(f"{name:<16} {value or 'missing'}")
