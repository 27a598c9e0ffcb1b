"""The access to a registry: its address, and properties as `confluent_kafka` names them.

Invariant: neither `repr` nor a message shows a password, a token or a key.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit, urlunsplit

from twopc.errors import ConfigurationError
from twopc.kafka.clients.access import rooted
from twopc.kafka.clients.config_file import settings_in

URL_VARIABLE = "TWOPC_SCHEMA_REGISTRY_URL"
CONFIG_VARIABLE = "TWOPC_SCHEMA_REGISTRY_CONFIG"

_FILES = ("ssl.ca.location", "ssl.certificate.location", "ssl.key.location")
PROPERTIES = frozenset((*_FILES, "basic.auth.user.info", "ssl.key.password", "proxy", "timeout"))
_BEARER = "bearer.auth."
TIMEOUT_SECONDS = 10.0


@dataclass(frozen=True)
class RegistryAccess:
    """An address or several, with a comma between them, and what a client needs there."""

    url: str = field(repr=False)
    properties: Mapping[str, Any] = field(repr=False)

    @classmethod
    def of(cls, url: str | None, properties: Mapping[str, Any] | None) -> RegistryAccess:
        """Take what was given, and of the environment what was not; raise ConfigurationError for what can't be meant.

        A property that is given comes before the file's.
        """
        address = url or os.environ.get(URL_VARIABLE, "")
        if not address:
            raise ConfigurationError(f"SchemaRegistry needs the address of one: SchemaRegistry(url), or {URL_VARIABLE}")
        for each in address.split(","):
            if urlsplit(each.strip()).scheme not in ("http", "https"):
                raise ConfigurationError(
                    f"the address of a schema registry is http:// or https://, not {_bare(each)!r}"
                )
        wanted = {"timeout": TIMEOUT_SECONDS, **_from_file(), **(properties or {})}
        access = cls(address, rooted(wanted, _FILES))
        access._check()
        return access

    def __str__(self) -> str:
        return ",".join(map(_bare, self.url.split(",")))

    def client_config(self) -> dict[str, Any]:
        """Return what the client is made with: it asks once, and waiting is up to its caller."""
        timeout = float(self.properties["timeout"])
        config = {**self.properties, "timeout": timeout, "url": str(self), "max.retries": 0}
        if user := _user_of(self.url):
            config.setdefault("basic.auth.user.info", user)
        if "https://" not in self.url:
            # The client reads all certificates there are, for 0.1 s each time, though it never needs them.
            config["ssl.ca.location"] = False
        return config

    def _check(self) -> None:
        for name, value in self.properties.items():
            if name not in PROPERTIES and not name.startswith(_BEARER):
                known = ", ".join(sorted(PROPERTIES))
                raise ConfigurationError(f"{name!r} is no property of a SchemaRegistry: those are {known}, {_BEARER}*")
            if name in _FILES and not Path(str(value)).exists():
                raise ConfigurationError(f"{name} of the schema registry names {str(value)!r}, which is not there")
        try:
            float(self.properties["timeout"])
        except (TypeError, ValueError):
            raise ConfigurationError("timeout of the schema registry must be a number of seconds") from None
        login = self.properties.get("basic.auth.user.info", ":")
        if not isinstance(login, str) or ":" not in login:
            raise ConfigurationError("basic.auth.user.info of the schema registry must be USER:PASSWORD")


def _from_file() -> dict[str, str]:
    file = os.environ.get(CONFIG_VARIABLE)
    return dict(settings_in(CONFIG_VARIABLE, Path(file))) if file else {}


def _user_of(url: str) -> str:
    """Return USER:PASSWORD of the first address that has them in it; empty for none."""
    users = (urlsplit(each.strip()).netloc.rpartition("@")[0] for each in url.split(","))
    return unquote(next(filter(None, users), ""))


def _bare(url: str) -> str:
    """Return an address without a user and a password in it."""
    parts = urlsplit(url.strip())
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))
