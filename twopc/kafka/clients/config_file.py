"""A file of Kafka client settings that say how to get at brokers, in one form for every command.

A password is in the file and nowhere else: never on a command line, and never in a message about the file.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from twopc.errors import ConfigurationError
from twopc.kafka.clients.access import CONNECTION_SETTINGS, rooted


def read_kafka_config(file: Path | None) -> dict[str, str]:
    """Return the settings in a file, as librdkafka names them; raise ConfigurationError for what can't be meant."""
    if file is None:
        return {}
    settings: dict[str, Any] = {}
    for number, (name, value) in _numbered_settings("--kafka-config", file):
        settings[name] = _checked(f"--kafka-config {file}, line {number}", name, value)
    return rooted(settings)


def settings_in(option: str, file: Path) -> Iterator[tuple[str, str]]:
    """Yield names and values of the lines of a file that an option names; raise ConfigurationError for other lines."""
    return (setting for _, setting in _numbered_settings(option, file))


def _numbered_settings(option: str, file: Path) -> Iterator[tuple[int, tuple[str, str]]]:
    try:
        lines = file.read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not text"
        raise ConfigurationError(f"{option} {file} can't be read: {reason}") from error
    for number, line in enumerate(map(str.strip, lines), start=1):
        if line and line[0] not in "#!":
            name, equals, value = (part.strip() for part in line.partition("="))
            if not equals:
                raise ConfigurationError(f"{option} {file}, line {number}, is not NAME=VALUE")
            yield number, (name, value)


def _checked(where: str, name: str, value: str) -> str:
    if name == "bootstrap.servers":
        raise ConfigurationError(f"{where}: name the brokers with --bootstrap-servers instead of {name}")
    if name not in CONNECTION_SETTINGS:
        raise ConfigurationError(f"{where}: {name!r} is not one of {', '.join(sorted(CONNECTION_SETTINGS))}")
    if name.endswith(".location") and not Path(value).is_file():
        raise ConfigurationError(f"{where}: {name} names {value!r}, which is no file here")
    # A certificate has lines, and here a setting has one.
    return value.replace("\\n", "\n") if name.endswith(".pem") else value
