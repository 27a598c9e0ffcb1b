"""The options by which a command reaches brokers; where they want TLS or a login, a file has the access."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

BootstrapServers = Annotated[
    str | None,
    typer.Option("--bootstrap-servers", "-b", envvar="TWOPC_BOOTSTRAP_SERVERS", help="Kafka, HOST:PORT[,...]."),
]


KafkaConfig = Annotated[
    Path | None,
    typer.Option(
        "--kafka-config",
        envvar="TWOPC_KAFKA_CONFIG",
        metavar="FILE",
        help="Lines of NAME=VALUE that say how to get at the brokers: security.protocol, sasl.username, ...",
    ),
]
