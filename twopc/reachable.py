"""Whether somebody accepts connections at an address, found out quickly: what clients take a minute to say."""

from __future__ import annotations

import socket

CONNECT_SECONDS = 2.0


def reason_not_reachable(host: str, port: int) -> str | None:
    """Return why nobody accepts a connection there, within two seconds; None where somebody does."""
    try:
        socket.create_connection((host.strip("[]"), port), timeout=CONNECT_SECONDS).close()
    except OSError as error:
        return str(error)
    return None
