"""The access to brokers, for both Kafka clients: librdkafka's settings, checked; this module knows what they mean.

Invariant: a message quotes names, users and files, and never a password, a key or a token.
"""

from __future__ import annotations

import copy
import socket
from collections.abc import Collection, Mapping
from os import PathLike
from pathlib import Path
from typing import Any, Protocol, TypeVar

from twopc.errors import ConfigurationError

PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
HOST_CHECK = "ssl.endpoint.identification.algorithm"
OAUTHBEARER = "OAUTHBEARER"
_METHOD, _GRANT = "sasl.oauthbearer.method", "sasl.oauthbearer.grant.type"
_ONLY = {_METHOD: "oidc", _GRANT: "client_credentials"}
ENDPOINT = "sasl.oauthbearer.token.endpoint.url"
CLIENT_ID = ("sasl.oauthbearer.client.id", "sasl.oauthbearer.client.credentials.client.id")
CLIENT_SECRET = ("sasl.oauthbearer.client.secret", "sasl.oauthbearer.client.credentials.client.secret")
SCOPE, EXTENSIONS = "sasl.oauthbearer.scope", "sasl.oauthbearer.extensions"
HTTPS_CA, HTTPS_CA_PEM = "https.ca.location", "https.ca.pem"

_LOGIN = (
    *("client.id", "security.protocol", "sasl.mechanism", "sasl.mechanisms", "sasl.username", "sasl.password"),
    "sasl.kerberos.service.name",
)
_TLS = (
    *("ssl.ca.location", "ssl.certificate.location", "ssl.key.location", "ssl.key.password", "ssl.crl.location"),
    *("ssl.ca.pem", "ssl.certificate.pem", "ssl.key.pem", HOST_CHECK),
)
_OAUTH = (_METHOD, _GRANT, ENDPOINT, *CLIENT_ID, *CLIENT_SECRET, SCOPE, EXTENSIONS, HTTPS_CA, HTTPS_CA_PEM)

CONNECTION_SETTINGS = frozenset((*_LOGIN, *_TLS, *_OAUTH))
"""The settings that say how to get at brokers, as far as both clients know them."""

_PREFIXES = ("security.", "sasl.", "ssl.", "enable.ssl.", "enable.sasl.", "https.", "client.")
_BOTH_MUST_KNOW = ("sasl.", "ssl.", "enable.ssl.", "enable.sasl.", "https.")
_FILES = ("ssl.ca.location", "ssl.certificate.location", "ssl.key.location", "ssl.crl.location", HTTPS_CA)


def access_of(properties: Mapping[str, Any]) -> dict[str, Any]:
    """Return what of a client's properties says how to get at the brokers; the rest is tuning."""
    return {name: value for name, value in properties.items() if name.startswith(_PREFIXES)}


def check_access(properties: Mapping[str, Any]) -> None:
    """Raise ConfigurationError for what only one of the two clients would understand; opens and connects to nothing."""
    for name in properties:
        if name.startswith(_BOTH_MUST_KNOW) and name not in CONNECTION_SETTINGS:
            raise ConfigurationError(
                f"property {name!r} can't be used: the client that settles transactions has no such setting; "
                f"of its kind it knows {', '.join(sorted(n for n in CONNECTION_SETTINGS if n.startswith(name[:4])))}"
            )
    for name, value in _ONLY.items():
        if properties.get(name, value) != value:
            raise ConfigurationError(f"{name} must be {value!r}, but is {properties[name]!r}: no other works here")
    security_protocol(properties)
    if mechanism(properties) == OAUTHBEARER:
        _check_oauth(properties)


def checked_shared(properties: Mapping[str, Any]) -> dict[str, Any]:
    """Return properties that source and sink of a job share; raise ConfigurationError for one that is of either.

    Their files have absolute names.
    """
    for name in properties:
        if name not in CONNECTION_SETTINGS:
            raise ConfigurationError(
                f"{name!r} can't be a property of a whole job, which are those that say how to get at brokers "
                f"({', '.join(sorted(CONNECTION_SETTINGS))}): give it to KafkaSource or to KafkaSink"
            )
    return rooted(properties)


def rooted(properties: Mapping[str, Any], files: Collection[str] = _FILES) -> dict[str, Any]:
    """Return them with absolute names of the files that they name: a job may change its folder, and so may its hosts.

    "probe" of `ssl.ca.location` has librdkafka look for a file itself.
    """
    return {name: _rooted(value) if name in files else value for name, value in properties.items()}


def _rooted(value: Any) -> Any:
    return str(Path(value).absolute()) if isinstance(value, str | PathLike) and value not in ("", "probe") else value


def with_shared(own: Mapping[str, Any], shared: Mapping[str, Any]) -> dict[str, Any]:
    """Return the properties of a source or sink, and of those that it shares each that it does not set itself."""
    kinds = {_kind(name) for name in own}
    return {name: value for name, value in shared.items() if _kind(name) not in kinds} | dict(own)


class _Described(Protocol):
    properties: dict[str, Any]


D = TypeVar("D", bound=_Described)


def copy_with_access(described: D, properties: Mapping[str, Any]) -> D:
    """Return a copy of a source or sink that gets at brokers by these too, where its own properties don't say."""
    shared = copy.copy(described)
    shared.properties = with_shared(described.properties, checked_shared(properties))
    check_access(shared.properties)
    return shared


def _kind(name: str) -> str:
    """Return one name for all settings that say the same thing in different ways."""
    if name in CLIENT_ID or name in CLIENT_SECRET:
        return name.replace("client.credentials.", "")
    return "sasl.mechanism" if name == "sasl.mechanisms" else name.removesuffix(".location").removesuffix(".pem")


def check_files(properties: Mapping[str, Any]) -> None:
    """Raise ConfigurationError if a file that a setting names is not on this machine."""
    for name in _FILES:
        value = properties.get(name)
        if value and value != "probe" and not Path(str(value)).exists():
            raise ConfigurationError(f"{name} names {str(value)!r}, which is not there (on {socket.gethostname()})")


def security_protocol(properties: Mapping[str, Any]) -> str:
    """Return the protocol; refuse what isn't one, which kafka-python would take for no security at all."""
    name = str(properties.get("security.protocol", "PLAINTEXT"))
    if name.upper() not in PROTOCOLS:
        raise ConfigurationError(f"security.protocol must be one of {', '.join(PROTOCOLS)}, but is {name!r}")
    return name.upper()


def mechanism(properties: Mapping[str, Any]) -> str:
    """Return the SASL mechanism, librdkafka's default where none is set; empty where no login is made."""
    if not security_protocol(properties).startswith("SASL"):
        return ""
    return str(properties.get("sasl.mechanisms") or properties.get("sasl.mechanism") or "GSSAPI").upper()


def principal(properties: Mapping[str, Any]) -> str:
    """Say who these settings are to the brokers, by the setting that says so."""
    protocol, how = security_protocol(properties), mechanism(properties)
    if how == OAUTHBEARER:
        return f"sasl.oauthbearer.client.id {first_of(properties, CLIENT_ID)!r}"
    if how == "GSSAPI":
        return "the Kerberos ticket of this process"
    if how:
        return f"sasl.username {properties.get('sasl.username')!r}"
    if protocol == "SSL" and ("ssl.certificate.location" in properties or "ssl.certificate.pem" in properties):
        return "the certificate of ssl.certificate.location or .pem"
    return f"nobody (User:ANONYMOUS), because security.protocol is {protocol} without a login"


def first_of(properties: Mapping[str, Any], names: tuple[str, ...]) -> str:
    """Return the first of several names of one setting that is set; empty for none."""
    return next((str(properties[name]) for name in names if properties.get(name)), "")


def _check_oauth(properties: Mapping[str, Any]) -> None:
    if _METHOD not in properties:
        raise ConfigurationError(f"sasl.mechanism OAUTHBEARER needs {_METHOD}=oidc, and where tokens are: {ENDPOINT}")
    for names in ((ENDPOINT,), CLIENT_ID, CLIENT_SECRET):
        if not first_of(properties, names):
            raise ConfigurationError(f"sasl.mechanism OAUTHBEARER with {_METHOD}=oidc needs {names[0]}")
