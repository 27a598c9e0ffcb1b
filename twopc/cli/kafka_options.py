"""Which brokers a command asks, and how it gets in where they want TLS or a login: by a file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from twopc.config import RunSettings
from twopc.errors import ConfigurationError
from twopc.kafka.cluster import Cluster
from twopc.kafka.config_file import read_kafka_config

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


def cluster_of(bootstrap_servers: BootstrapServers = None, kafka_config: KafkaConfig = None) -> Cluster:
    """The options that name brokers; for `twopc.cli.shared_options.shared_options`."""
    servers = RunSettings.resolve(bootstrap_servers=bootstrap_servers).bootstrap_servers
    if not servers:
        raise ConfigurationError("no Kafka brokers are named: say --bootstrap-servers HOST:PORT")
    return Cluster(servers, read_kafka_config(kafka_config))
