"""The TLS settings of librdkafka as Python's own TLS takes them: files, or PEM in the settings themselves."""

from __future__ import annotations

import os
import ssl
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from twopc.errors import ConfigurationError
from twopc.kafka.clients.access import HOST_CHECK

_MOST_BYTES = 60_000
"""A pipe holds 64 KiB, unread."""


def tls_context(properties: Mapping[str, Any]) -> ssl.SSLContext:
    """Return a client's side of TLS; raise ConfigurationError naming the settings that can't be used."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.check_hostname = properties.get(HOST_CHECK, "https") != "none"
    try:
        _trust(context, properties)
    except (OSError, ValueError) as error:
        raise _unusable("ssl.ca.location, ssl.ca.pem, ssl.crl.location", error) from error
    try:
        _identify(context, properties)
    except (OSError, ValueError) as error:
        names = "ssl.certificate.location or .pem, ssl.key.location or .pem, ssl.key.password"
        raise _unusable(names, error) from error
    return context


def _trust(context: ssl.SSLContext, properties: Mapping[str, Any]) -> None:
    location, pem = str(properties.get("ssl.ca.location", "probe")), properties.get("ssl.ca.pem")
    if pem:
        context.load_verify_locations(cadata=str(pem))
    elif location == "probe":
        context.load_default_certs()
    elif Path(location).is_dir():
        context.load_verify_locations(capath=location)
    else:
        context.load_verify_locations(cafile=location)
    if crl := properties.get("ssl.crl.location"):
        context.load_verify_locations(cafile=str(crl))
        context.verify_flags |= ssl.VERIFY_CRL_CHECK_LEAF


def _identify(context: ssl.SSLContext, properties: Mapping[str, Any]) -> None:
    with (
        _file("ssl.certificate", properties) as certificate,
        _file("ssl.key", properties) as key,
    ):
        if certificate is not None:
            # An empty password, in place of none: OpenSSL would ask the terminal for it.
            context.load_cert_chain(certificate, key, str(properties.get("ssl.key.password", "")))


@contextmanager
def _file(setting: str, properties: Mapping[str, Any]) -> Iterator[str | None]:
    """Yield the path of what a setting holds or names. A key that stands in the settings never comes onto a disk."""
    pem, location = properties.get(f"{setting}.pem"), properties.get(f"{setting}.location")
    if not pem:
        yield None if location is None else str(location)
        return
    data = str(pem).encode()
    if len(data) > _MOST_BYTES:
        raise ValueError(f"{setting}.pem is longer than {_MOST_BYTES} bytes")
    reading, writing = os.pipe()
    try:
        os.write(writing, data)
        os.close(writing)
        yield f"/dev/fd/{reading}"
    finally:
        os.close(reading)


def _unusable(settings: str, error: Exception) -> ConfigurationError:
    reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return ConfigurationError(f"the TLS settings for Kafka can't be used ({reason}): check {settings}")
