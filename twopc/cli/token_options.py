"""The token by which a process is let in by a coordinator, or a person by a page: never on a command line."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from twopc.errors import ConfigurationError

TOKEN_VARIABLE = "TWOPC_COORDINATOR_TOKEN"  # noqa: S105  the name of it, not the token

UI_TOKEN_VARIABLE = "TWOPC_UI_TOKEN"  # noqa: S105  the name of it, not the token

TokenFile = Annotated[
    Path | None,
    typer.Option(
        "--token-file",
        envvar="TWOPC_COORDINATOR_TOKEN_FILE",
        help=f"A file with the coordinator's bearer token; or set {TOKEN_VARIABLE}.",
    ),
]


def read_ui_token() -> str:
    """Return the token that opens the page of a job, "" if none is set."""
    return os.environ.get(UI_TOKEN_VARIABLE, "")


def read_token(file: Path | None) -> str | None:
    """Return the token, None if none is set; raise ConfigurationError if there is none where it should be."""
    if file is None:
        return os.environ.get(TOKEN_VARIABLE) or None
    try:
        token = file.read_text().strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not text"
        raise ConfigurationError(f"--token-file {file} can't be read: {reason}") from error
    if not token:
        raise ConfigurationError(f"--token-file {file} is empty")
    return token
