"""A file of Kafka client settings that say how to get at brokers, in one form for every command.

A password is in the file and nowhere else: never on a command line, and never in a message about the file.
"""

from __future__ import annotations

from pathlib import Path

from twopc.errors import ConfigurationError
from twopc.kafka.access import CONNECTION_SETTINGS


def read_kafka_config(file: Path | None) -> dict[str, str]:
    """Return the settings in a file, as librdkafka names them; raise ConfigurationError for what can't be meant."""
    if file is None:
        return {}
    try:
        lines = file.read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not text"
        raise ConfigurationError(f"--kafka-config {file} can't be read: {reason}") from error
    settings: dict[str, str] = {}
    for number, line in enumerate(map(str.strip, lines), start=1):
        if line and line[0] not in "#!":
            name, value = _setting(f"--kafka-config {file}, line {number}", line)
            settings[name] = value
    return settings


def _setting(where: str, line: str) -> tuple[str, str]:
    name, equals, value = (part.strip() for part in line.partition("="))
    if not equals:
        raise ConfigurationError(f"{where}, is not NAME=VALUE")
    if name == "bootstrap.servers":
        raise ConfigurationError(f"{where}: name the brokers with --bootstrap-servers instead of {name}")
    if name not in CONNECTION_SETTINGS:
        raise ConfigurationError(f"{where}: {name!r} is not one of {', '.join(sorted(CONNECTION_SETTINGS))}")
    if name.endswith(".location") and not Path(value).is_file():
        raise ConfigurationError(f"{where}: {name} names {value!r}, which is no file here")
    # A certificate has lines, and here a setting has one.
    return name, value.replace("\\n", "\n") if name.endswith(".pem") else value
