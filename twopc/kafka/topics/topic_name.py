"""The names that a topic can have, as Kafka's `Topic` has them."""

from __future__ import annotations

import re

from twopc.errors import ConfigurationError

TOPIC_NAMES = "a topic's name has 1 to 249 letters of ASCII, digits, '.', '_' and '-', and is not '.' or '..'"

_NAME = re.compile(r"[a-zA-Z0-9._-]{1,249}")


def is_topic_name(name: str) -> bool:
    """Whether a topic can have this name."""
    return _NAME.fullmatch(name) is not None and name not in (".", "..")


def checked_topic(of: str, name: str) -> str:
    """Return the name of a topic; raise ConfigurationError where none can have it."""
    if not is_topic_name(name):
        raise ConfigurationError(f"{of} names topic {name!r}: {TOPIC_NAMES}")
    return name
