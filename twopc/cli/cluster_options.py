"""The cluster that the options of a command name."""

from __future__ import annotations

from twopc.cli.kafka_options import BootstrapServers, KafkaConfig
from twopc.config import RunSettings
from twopc.errors import ConfigurationError
from twopc.kafka.clients.cluster import Cluster
from twopc.kafka.clients.config_file import read_kafka_config


def cluster_of(bootstrap_servers: BootstrapServers = None, kafka_config: KafkaConfig = None) -> Cluster:
    """The options that name brokers; for `twopc.cli.shared_options.shared_options`."""
    servers = RunSettings.resolve(bootstrap_servers=bootstrap_servers).bootstrap_servers
    if not servers:
        raise ConfigurationError("no Kafka brokers are named: say --bootstrap-servers HOST:PORT")
    return Cluster(servers, read_kafka_config(kafka_config))
