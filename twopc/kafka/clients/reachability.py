"""The reachability of brokers, found out quickly and said plainly.

kafka-python would try for long, say little, and leave a thread behind when it gives up.
"""

from __future__ import annotations

from twopc import reachable
from twopc.errors import ConfigurationError, Unavailable


class NoBroker(Unavailable):
    """Nobody at this address answers, who had seconds for it."""

    def __init__(self, message: str, servers: str) -> None:
        super().__init__(message)
        self.servers = servers


CONNECT_SECONDS = 10.0


def await_reachable(servers: str, seconds: float = CONNECT_SECONDS) -> list[str]:
    """Return those that accept a connection, once one does; raise NoBroker, naming all, if none does in time."""
    try:
        return reachable.await_any({server: _address(server) for server in map(str.strip, servers.split(","))}, seconds)
    except reachable.NotReachable as reason:
        raise NoBroker(
            f"no Kafka broker answers at {servers} ({reason}): start it, or correct bootstrap_servers", servers
        ) from None


def reason_not_reachable(server: str) -> str | None:
    """Return why nobody accepts a connection at host:port, within two seconds; None where somebody does."""
    return reachable.reason_not_reachable(_address(server))


def _address(server: str) -> reachable.Address:
    host, _, port = server.rpartition(":")
    if not host or not port.isdecimal():
        raise ConfigurationError(f"bootstrap_servers must be host:port, comma-separated; {server!r} is not")
    return host, int(port)
