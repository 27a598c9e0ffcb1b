"""The options of a source or a sink as Spark hands them over: texts, by names of which case does not count.

Those that begin with `kafka.` are properties of librdkafka's, to get at the brokers with; the others are our own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Self

from twopc.errors import ConfigurationError

PREFIX = "kafka."
SERVERS = "kafka.bootstrap.servers"


@dataclass(frozen=True, slots=True)
class GivenOptions:
    """The options that were given: `own` and `properties` by lower-case names, the latter without their prefix."""

    servers: str
    own: Mapping[str, str]
    properties: Mapping[str, str] = field(repr=False)

    @classmethod
    def of(cls, options: Mapping[str, str]) -> Self:
        """Raise ConfigurationError where no servers are named."""
        named = {name.lower(): value for name, value in options.items()}
        servers = named.pop(SERVERS, "")
        if not servers:
            raise ConfigurationError(f"no Kafka brokers are named: say option('{SERVERS}', 'HOST:PORT')")
        return cls(
            servers,
            {name: value for name, value in named.items() if not name.startswith(PREFIX)},
            {name.removeprefix(PREFIX): value for name, value in named.items() if name.startswith(PREFIX)},
        )


def names_in(written: str) -> tuple[str, ...]:
    """Return what is separated by commas, each once, in order."""
    return tuple(dict.fromkeys(name for each in written.split(",") if (name := each.strip())))
