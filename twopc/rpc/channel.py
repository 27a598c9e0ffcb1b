"""The channels to the coordinator: their options, their TLS, and the token of every call."""

from __future__ import annotations

import grpc

from twopc.errors import ConfigurationError
from twopc.rpc.tls import TlsFiles, channel_credentials

MESSAGE_BYTES_MAX = 4 * 1024 * 1024
"""Of one message to the coordinator, which trusts nobody. The greatest of ours acknowledges a checkpoint."""

ANSWER_BYTES_MAX = 256 * 1024 * 1024
"""Of one message from it. The greatest begins an attempt: it holds the metadata of every checkpoint that is kept."""

CHANNEL_OPTIONS = (
    ("grpc.max_receive_message_length", ANSWER_BYTES_MAX),
    ("grpc.max_send_message_length", MESSAGE_BYTES_MAX),
    ("grpc.initial_reconnect_backoff_ms", 100),
    # Despite its name this is how long a connection may take to come about, with TLS and the first words of HTTP/2
    # (gRPC's connection-backoff.md: MIN_CONNECT_TIMEOUT). One that is refused is tried again by the others.
    ("grpc.min_reconnect_backoff_ms", 5_000),
    ("grpc.max_reconnect_backoff_ms", 1_000),
    # A stream may be silent for long: without these, a host that vanished would be noticed only by the next send.
    ("grpc.keepalive_time_ms", 10_000),
    ("grpc.keepalive_timeout_ms", 10_000),
    # One ping is under way at a time, and where much is said it is one of gRPC's own, which has a minute.
    ("grpc.http2.ping_timeout_ms", 10_000),
    ("grpc.http2.max_pings_without_data", 0),
    ("grpc.enable_http_proxy", 0),
)


def open_channel(address: str, tls: TlsFiles | None = None) -> grpc.Channel:
    """Return a channel that connects when it is first used, and again whenever it must.

    Raise ConfigurationError if the address is none: gRPC would try to resolve it for as long as anybody waits.
    """
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal():
        raise ConfigurationError(f"the coordinator's address must be host:port, but is {address!r}")
    if tls is None:
        return grpc.insecure_channel(address, options=CHANNEL_OPTIONS)
    return grpc.secure_channel(address, channel_credentials(tls), options=CHANNEL_OPTIONS)


def credentials(token: str | None) -> tuple[tuple[str, str], ...]:
    """The metadata that goes with every call."""
    return (("authorization", f"Bearer {checked_token(token)}"),) if token else ()


def checked_token(token: str) -> str:
    """Return the token if it can travel in a header; raise ConfigurationError, which does not show it, otherwise."""
    if not (token.isascii() and token.isprintable() and token == token.strip()):
        raise ConfigurationError("the coordinator's token must be printable ASCII on one line: make another one")
    return token
