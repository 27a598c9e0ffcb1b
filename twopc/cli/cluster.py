"""Which brokers a command asks: options that commands share, and the value that they make."""

from __future__ import annotations

from typing import Annotated

import typer

from twopc.cli.kafka_config import KafkaConfig
from twopc.config import RunSettings
from twopc.errors import ConfigurationError
from twopc.kafka.cluster import Cluster
from twopc.kafka.config_file import read_kafka_config

BootstrapServers = Annotated[
    str | None,
    typer.Option("--bootstrap-servers", "-b", envvar="TWOPC_BOOTSTRAP_SERVERS", help="Kafka, HOST:PORT[,...]."),
]


def cluster_of(bootstrap_servers: BootstrapServers = None, kafka_config: KafkaConfig = None) -> Cluster:
    """The options that name brokers; for `twopc.cli.folding.taking`."""
    servers = RunSettings.resolve(bootstrap_servers=bootstrap_servers).bootstrap_servers
    if not servers:
        raise ConfigurationError("no Kafka brokers are named: say --bootstrap-servers HOST:PORT")
    return Cluster(servers, read_kafka_config(kafka_config))
