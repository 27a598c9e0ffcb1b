"""How a command is told how to get at brokers that want TLS or a login: by a file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

KafkaConfig = Annotated[
    Path | None,
    typer.Option(
        "--kafka-config",
        envvar="TWOPC_KAFKA_CONFIG",
        metavar="FILE",
        help="Lines of NAME=VALUE that say how to get at the brokers: security.protocol, sasl.username, ...",
    ),
]
