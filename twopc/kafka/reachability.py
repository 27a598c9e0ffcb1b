"""The reachability of brokers, found out quickly and said plainly.

kafka-python would try for long, say little, and leave a thread behind when it gives up.
"""

from __future__ import annotations

import time

from twopc import reachable
from twopc.errors import ConfigurationError, Unavailable


class NoBroker(Unavailable):
    """Nobody at this address answers, who had seconds for it."""

    def __init__(self, message: str, servers: str) -> None:
        super().__init__(message)
        self.servers = servers


CONNECT_SECONDS = 10.0
PAUSE_SECONDS = 0.25


def await_reachable(servers: str, seconds: float = CONNECT_SECONDS) -> list[str]:
    """Return those that accept a connection, once one does; raise NoBroker, naming all, if none does in time."""
    deadline = time.monotonic() + seconds
    while True:
        reasons = {server: reason_not_reachable(server) for server in map(str.strip, servers.split(","))}
        if reached := [server for server, reason in reasons.items() if reason is None]:
            return reached
        if time.monotonic() > deadline:
            reason = next(iter(reasons.values()))
            raise NoBroker(
                f"no Kafka broker answers at {servers} ({reason}): start it, or correct bootstrap_servers", servers
            )
        time.sleep(PAUSE_SECONDS)


def reason_not_reachable(server: str) -> str | None:
    """Return why nobody accepts a connection at host:port, within two seconds; None where somebody does."""
    host, _, port = server.rpartition(":")
    if not host or not port.isdecimal():
        raise ConfigurationError(f"bootstrap_servers must be host:port, comma-separated; {server!r} is not")
    return reachable.reason_not_reachable(host, int(port))
