"""Tokens for OAUTHBEARER on the control path, got as librdkafka gets its own: by OIDC's client credentials."""

from __future__ import annotations

import base64
import json
import ssl
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from twopc.errors import ConfigurationError, Unavailable
from twopc.kafka.clients.access import (
    CLIENT_ID,
    CLIENT_SECRET,
    ENDPOINT,
    EXTENSIONS,
    HTTPS_CA,
    HTTPS_CA_PEM,
    SCOPE,
    first_of,
)
from twopc.kafka.clients.kafka_python import AbstractTokenProvider

TIMEOUT_SECONDS = 10.0
LIFETIME_SHARE = 0.8
"""A token is used for so much of its life, as in librdkafka."""

_NAMES = (ENDPOINT, *CLIENT_ID, *CLIENT_SECRET, SCOPE, EXTENSIONS, HTTPS_CA, HTTPS_CA_PEM)


class OidcTokens(AbstractTokenProvider):  # type: ignore[misc]
    """Any thread may ask; a token is got anew when most of its life is over."""

    def __init__(self, properties: Mapping[str, Any]) -> None:
        super().__init__()
        self._properties = dict(properties)
        self._lock = threading.Lock()
        self._token = ""
        self._until = 0.0

    def token(self) -> str:
        """Return a token; raise ConfigurationError if none is given to this client, Unavailable if nobody answers."""
        with self._lock:
            if time.monotonic() >= self._until:
                self._token, seconds = self._fetch()
                self._until = time.monotonic() + LIFETIME_SHARE * seconds
            return self._token

    def extensions(self) -> dict[str, str]:
        pairs = str(self._properties.get(EXTENSIONS, "")).split(",")
        return dict(pair.strip().split("=", 1) for pair in pairs if "=" in pair)

    def _fetch(self) -> tuple[str, float]:
        url = str(self._properties[ENDPOINT])
        if not url.startswith(("http://", "https://")):
            raise ConfigurationError(f"{ENDPOINT} must be an http or https address, but is {url!r}")
        login = f"{first_of(self._properties, CLIENT_ID)}:{first_of(self._properties, CLIENT_SECRET)}"
        form = {"grant_type": "client_credentials"}
        if scope := self._properties.get(SCOPE):
            form["scope"] = str(scope)
        request = urllib.request.Request(  # noqa: S310  its scheme was looked at
            url,
            urllib.parse.urlencode(form).encode(),
            {"Authorization": f"Basic {base64.b64encode(login.encode()).decode()}", "Accept": "application/json"},
        )
        try:
            with urllib.request.urlopen(  # noqa: S310  its scheme was looked at
                request, timeout=TIMEOUT_SECONDS, context=self._https()
            ) as answer:
                body = json.load(answer)
            token, seconds = str(body["access_token"]), float(body.get("expires_in", 0))
        except urllib.error.HTTPError as error:
            error.close()
            raise self._refusal(url, error.code) from error
        except (OSError, ValueError, KeyError, TypeError) as error:
            reason = error.reason if isinstance(error, urllib.error.URLError) else type(error).__name__
            raise Unavailable(f"no token comes from {url} ({reason}): check {ENDPOINT}") from None
        return token, seconds

    def _refusal(self, url: str, status: int) -> ConfigurationError | Unavailable:
        if status >= 500:
            return Unavailable(f"no token comes from {url} (HTTP {status})")
        return ConfigurationError(
            f"{url} gives no token to {first_of(self._properties, CLIENT_ID)!r} (HTTP {status}): check {CLIENT_ID[0]}, "
            f"{CLIENT_SECRET[0]}, {SCOPE} and {ENDPOINT}"
        )

    def _https(self) -> ssl.SSLContext:
        location, pem = self._properties.get(HTTPS_CA), self._properties.get(HTTPS_CA_PEM)
        return ssl.create_default_context(
            cafile=None if location is None else str(location), cadata=None if pem is None else str(pem)
        )


def oidc_tokens(properties: Mapping[str, Any]) -> OidcTokens:
    """Return the tokens of these settings: the same for all connections of this process."""
    return _of(tuple((name, str(properties[name])) for name in _NAMES if name in properties))


@lru_cache(maxsize=8)
def _of(settings: tuple[tuple[str, str], ...]) -> OidcTokens:
    return OidcTokens(dict(settings))
