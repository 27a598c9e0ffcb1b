"""Why brokers that listen can't be talked to, as TLS says it: kafka-python keeps that to itself."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

_SECONDS = 3.0
_ALERT_SECONDS = 1.0


def tls_trouble(server: str, config: Mapping[str, Any]) -> str:
    """Shake hands with a server (host:port) as kafka-python's settings say; return what is wrong, if that is known."""
    host, _, port = server.rpartition(":")
    with suppress(OSError, ValueError), socket.create_connection((host, int(port)), _SECONDS) as plain:
        if "SSL" in str(config.get("security_protocol")):
            return _refusal(plain, host, config)
        with _anything().wrap_socket(plain, server_hostname=host):
            return "it speaks TLS: set security.protocol to SSL or SASL_SSL"
    return ""


def _refusal(plain: socket.socket, host: str, config: Mapping[str, Any]) -> str:
    try:
        with _as_configured(config).wrap_socket(plain, server_hostname=host) as sealed:
            # In TLS 1.3 the server says only after the handshake that it does not let the client in.
            sealed.settimeout(_ALERT_SECONDS)
            with suppress(TimeoutError):
                sealed.recv(1)
    except ssl.SSLCertVerificationError as error:
        return f"its certificate is not trusted ({error.verify_message}): check ssl.ca.location"
    except (ssl.SSLError, ConnectionError) as error:
        return f"TLS fails ({error}): check ssl.certificate.location, and that TLS is spoken on that port"
    return ""


def _anything() -> ssl.SSLContext:
    """To find out whether TLS is spoken at all; nothing is sent."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def _as_configured(config: Mapping[str, Any]) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=config.get("ssl_cafile"))
    context.check_hostname = bool(config.get("ssl_check_hostname", True))
    if config.get("ssl_certfile"):
        context.load_cert_chain(config["ssl_certfile"], config.get("ssl_keyfile"), config.get("ssl_password"))
    return context
