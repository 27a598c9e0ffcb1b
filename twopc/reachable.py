"""Whether somebody accepts connections at an address, found out quickly: what clients take a minute to say."""

from __future__ import annotations

import socket
import time
from collections.abc import Mapping

CONNECT_SECONDS = 2.0
PAUSE_SECONDS = 0.25

Address = tuple[str, int]
"""Host and port."""


class NotReachable(Exception):
    """Nobody accepts connections; the text is why, of the first address."""


def await_any(addresses: Mapping[str, Address], seconds: float) -> list[str]:
    """Return the names of those that accept a connection, once one does; raise NotReachable if none does in time."""
    deadline = time.monotonic() + seconds
    while True:
        reasons = {name: reason_not_reachable(address) for name, address in addresses.items()}
        if reached := [name for name, reason in reasons.items() if reason is None]:
            return reached
        if time.monotonic() > deadline:
            raise NotReachable(next(iter(reasons.values())))
        time.sleep(PAUSE_SECONDS)


def reason_not_reachable(address: Address) -> str | None:
    """Return why nobody accepts a connection there, within two seconds; None where somebody does."""
    host, port = address
    try:
        socket.create_connection((host.strip("[]"), port), timeout=CONNECT_SECONDS).close()
    except OSError as error:
        return str(error)
    return None
