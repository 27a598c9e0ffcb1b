"""Ports on loopback for local brokers.

They are taken from below the range that the kernel uses for outgoing connections: a client that keeps dialling a dead
broker's port inside that range can end up connected to itself, and the broker could never come back to its address.

That nobody listens on a port now is no promise: two processes may see it at once. So ports come in blocks, and a
process gives none but those of blocks that it has claimed. A claim is a socket that is bound to the first port of the
block, and never listens: the kernel knows of it, whoever else starts servers on this machine, and forgets it when the
process ends, however it ends. What a process has forked claims blocks of its own.
"""

from __future__ import annotations

import os
import random
import socket
import threading
from collections.abc import Collection

from twopc.errors import Unavailable
from twopc.testing.broker_settings import LOOPBACK

RANGE = range(20_000, 32_000)
BLOCK_SIZE = 50


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


class PortBlocks:
    """The blocks of one process, and what it has given of them; threads may share it."""

    def __init__(self, ports: range = RANGE, size: int = BLOCK_SIZE) -> None:
        self._all = ports
        # Not the seeded generator of a test run: two runs with one seed would go from block to block side by side.
        self._dice = random.SystemRandom()
        starts = range(ports.start, ports.stop - size + 1, size)
        self._unclaimed = [range(start, start + size) for start in self._dice.sample(starts, len(starts))]
        self._claims: list[int] = []
        self._fresh: list[int] = []
        self._given: list[int] = []
        self._lock = threading.Lock()

    def take(self, avoid: Collection[int]) -> int:
        """A port that nothing listens on; one that was given before only when there is no other block to claim."""
        with self._lock:
            while (port := _first_free(self._fresh, avoid)) is None and self._claim_another(avoid):
                pass
            if port is not None:
                self._fresh.remove(port)
            elif (port := _first_free(self._given, avoid)) is not None:
                self._given.remove(port)
            else:
                first, last = self._all.start, self._all.stop - 1
                raise Unavailable(f"no port is free from {first} to {last}: end some servers on this machine")
            self._given.append(port)
            return port

    def forget(self) -> None:
        """Let other processes have the blocks."""
        for descriptor in self._claims:
            os.close(descriptor)
        self._claims.clear()

    def _claim_another(self, avoid: Collection[int]) -> bool:
        for block in self._unclaimed:
            wanted = [port for port in block[1:] if port not in avoid]
            if wanted and (descriptor := _claim(block)) is not None:
                self._unclaimed.remove(block)
                self._claims.append(descriptor)
                self._fresh += self._dice.sample(block[1:], len(block) - 1)
                return True
        return False


def free_port(avoid: Collection[int] = ()) -> int:
    """A port that nothing listens on, and that no other process is given while this one lives; none of those to avoid.

    One that was asked for before comes last: who asked for it may not listen yet.
    """
    return _blocks.take(avoid)


def free_ports(count: int, avoid: Collection[int] = ()) -> list[int]:
    """So many of them, all different."""
    ports: list[int] = []
    while len(ports) < count:
        ports.append(free_port([*avoid, *ports]))
    return ports


def _first_free(ports: Collection[int], avoid: Collection[int]) -> int | None:
    return next((port for port in ports if port not in avoid and is_free(port)), None)


def _claim(block: range) -> int | None:
    """The descriptor that holds the claim; None if another process has it."""
    with socket.socket() as claim:
        # Without SO_REUSEADDR: two that ask for it can be bound to one port while neither listens.
        try:
            claim.bind((LOOPBACK, block.start))
        except OSError:
            return None
        return claim.detach()


def _begin_again() -> None:
    global _blocks
    # The descriptors are copies, and the claims are the parent's.
    _blocks.forget()
    _blocks = PortBlocks()


_blocks = PortBlocks()
os.register_at_fork(after_in_child=_begin_again)
