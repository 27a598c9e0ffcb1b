"""The protocol of a broker's listener, asked of its port: librdkafka and kafka-python see no more than a hang-up."""

from __future__ import annotations

import socket
import ssl
import struct
from contextlib import suppress
from dataclasses import dataclass

SECONDS = 3.0
_SASL_HANDSHAKE = 17
_ILLEGAL_SASL_STATE = 34
_MECHANISM = b"PLAIN"


@dataclass(frozen=True, slots=True)
class Listener:
    """A security protocol, by its name in Kafka, and the SASL mechanisms that are let in.

    Behind TLS that wants a client's certificate nobody can look: then it is "SSL", and may be SASL_SSL.
    """

    protocol: str
    mechanisms: tuple[str, ...] = ()


def listener_at(server: str) -> Listener | None:
    """Return what host:port speaks; None where nobody answers, or not as a Kafka broker does."""
    host, _, port = server.strip().rpartition(":")
    with suppress(OSError, ValueError), socket.create_connection((host.strip("[]"), int(port)), SECONDS) as plain:
        if found := _probe_login(plain, "SASL_PLAINTEXT", "PLAINTEXT"):
            return found
    with (
        suppress(OSError, ValueError),
        socket.create_connection((host.strip("[]"), int(port)), SECONDS) as plain,
        _trusting().wrap_socket(plain, server_hostname=host) as sealed,
    ):
        return _probe_login(sealed, "SASL_SSL", "SSL") or Listener("SSL")
    return None


def _probe_login(connection: socket.socket, with_login: str, without: str) -> Listener | None:
    """Ask for a login: a listener that knows none says so, and every other says which mechanisms it has."""
    client = b"twopc"
    body = struct.pack(
        f">hhih{len(client)}sh{len(_MECHANISM)}s",
        *(_SASL_HANDSHAKE, 1, 1),
        len(client),
        client,
        len(_MECHANISM),
        _MECHANISM,
    )
    try:
        connection.sendall(struct.pack(">i", len(body)) + body)
        (size,) = struct.unpack(">i", _received(connection, 4))
        answer = _received(connection, size)
        (correlation, code, count) = struct.unpack_from(">ihi", answer)
        if correlation != 1:
            return None
        if code == _ILLEGAL_SASL_STATE:
            return Listener(without)
        return Listener(with_login, _names(answer[10:], count))
    except (OSError, ValueError, struct.error):
        return None


def _received(connection: socket.socket, size: int) -> bytes:
    if not 0 <= size <= 65_536:
        raise ValueError(size)
    data = b""
    while len(data) < size:
        part = connection.recv(size - len(data))
        if not part:
            raise ConnectionResetError
        data += part
    return data


def _names(data: bytes, count: int) -> tuple[str, ...]:
    names = []
    for _ in range(count):
        (length,) = struct.unpack_from(">h", data)
        names.append(data[2 : 2 + length].decode())
        data = data[2 + length :]
    return tuple(names)


def _trusting() -> ssl.SSLContext:
    """To find out what is spoken; nothing secret is sent."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context
