"""How we dial the coordinator: the options of every channel and the token of every call."""

from __future__ import annotations

import grpc

MESSAGE_BYTES_MAX = 16 * 1024 * 1024

CHANNEL_OPTIONS = (
    ("grpc.max_receive_message_length", MESSAGE_BYTES_MAX),
    ("grpc.max_send_message_length", MESSAGE_BYTES_MAX),
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 500),
    ("grpc.max_reconnect_backoff_ms", 1_000),
    # A stream may be silent for long: without these, a host that vanished would be noticed only by the next send.
    ("grpc.keepalive_time_ms", 10_000),
    ("grpc.keepalive_timeout_ms", 10_000),
    ("grpc.http2.max_pings_without_data", 0),
    ("grpc.enable_http_proxy", 0),
)


def open_channel(address: str) -> grpc.Channel:
    """Return a channel that connects when it is first used, and again whenever it must."""
    return grpc.insecure_channel(address, options=CHANNEL_OPTIONS)


def credentials(token: str | None) -> tuple[tuple[str, str], ...]:
    """The metadata that goes with every call."""
    return (("authorization", f"Bearer {token}"),) if token else ()
