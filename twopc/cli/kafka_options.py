"""The options by which a command reaches brokers; where they want TLS or a login, a file has the access."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from twopc.cli.setting_options import option_of

BootstrapServers = Annotated[str | None, option_of("bootstrap_servers")]
KafkaConfig = Annotated[Path | None, option_of("kafka_config")]
