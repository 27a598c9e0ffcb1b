"""How a command reaches a coordinator: options that commands share. A token is never on a command line."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from twopc.errors import ConfigurationError

TOKEN_VARIABLE = "TWOPC_COORDINATOR_TOKEN"

TokenFile = Annotated[
    Path | None,
    typer.Option(
        "--token-file",
        envvar="TWOPC_COORDINATOR_TOKEN_FILE",
        help=f"A file with the coordinator's bearer token; or set {TOKEN_VARIABLE}.",
    ),
]
CoordinatorCa = Annotated[
    str | None,
    typer.Option(
        "--coordinator-ca", envvar="TWOPC_COORDINATOR_CA", help="Who signs the coordinator's certificate, PEM: use TLS."
    ),
]
CoordinatorCert = Annotated[
    str | None,
    typer.Option("--coordinator-cert", envvar="TWOPC_COORDINATOR_CERT", help="The certificate to show to it, PEM."),
]
CoordinatorKey = Annotated[
    str | None,
    typer.Option("--coordinator-key", envvar="TWOPC_COORDINATOR_KEY", help="The key of that certificate, PEM."),
]


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
