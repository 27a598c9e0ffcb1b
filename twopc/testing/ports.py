"""Ports on loopback for local brokers.

They are taken from below the range that the kernel uses for outgoing connections: a client that keeps dialling a dead
broker's port inside that range can end up connected to itself, and the broker could never come back to its address.

A port is free until somebody listens on it. Processes that start servers at the same time stay out of each other's way
when each has a share of its own: `TWOPC_PORTS=20000-23999`.
"""

from __future__ import annotations

import os
import random
import socket
from collections.abc import Collection

from twopc.errors import Unavailable
from twopc.testing.broker_settings import LOOPBACK

VARIABLE = "TWOPC_PORTS"
RANGE = range(20_000, 32_000)

_given: set[int] = set()
"""By this process: who asked for a port may not listen yet."""


def is_free(port: int) -> bool:
    """Whether a server could listen on the port now."""
    with socket.socket() as server:
        # As servers do: connections of a previous owner that still linger are no obstacle.
        server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            server.bind((LOOPBACK, port))
            server.listen(1)
        except OSError:
            return False
    return True


def free_port(avoid: Collection[int] = ()) -> int:
    """A port that nothing listens on now, other than those to avoid; one that was asked for before comes last."""
    # Not the seeded generator of a test run: two runs with one seed must not meet on one port.
    share = _share()
    for port in sorted(random.SystemRandom().sample(share, len(share)), key=_given.__contains__):
        if port not in avoid and is_free(port):
            _given.add(port)
            return port
    raise Unavailable(f"no port is free from {share.start} to {share.stop - 1}: end some servers on this machine")


def free_ports(count: int, avoid: Collection[int] = ()) -> list[int]:
    """So many of them, all different."""
    ports: list[int] = []
    while len(ports) < count:
        ports.append(free_port([*avoid, *ports]))
    return ports


def _share() -> range:
    if not (named := os.environ.get(VARIABLE)):
        return RANGE
    first, _, last = named.partition("-")
    return range(int(first), int(last) + 1)
