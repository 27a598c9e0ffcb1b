"""A TCP proxy on loopback that loses what it is told to lose: between clients and a broker, or a coordinator.

    with Proxy(target=coordinator_port) as proxy:
        proxy.cut(Direction.TO_CLIENT)     # what the target says is swallowed from now on
        proxy.heal()                       # those connections are ended; new ones work

In front of Kafka (`KafkaProxy`) it knows requests and replies, and loses or delays single ones by `Rule`. A broker must
then tell its clients the proxy's port: see `LocalBroker(proxied=True)`.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import suppress
from enum import Enum
from typing import Self

from twopc.testing.broker_settings import LOOPBACK
from twopc.testing.ports import free_port

_CHUNK_BYTES = 65_536
_CONNECT_SECONDS = 5.0


class Direction(Enum):
    """The direction of bytes through the proxy."""

    TO_TARGET = "to target"
    TO_CLIENT = "to client"


class Connection:
    """One client's connection and the one to the target that belongs to it."""

    def __init__(self, client: socket.socket, target: socket.socket) -> None:
        self.client = client
        self.target = target
        self.client_port = int(client.getpeername()[1])
        self.lost_something = False

    def close(self) -> None:
        for end in (self.client, self.target):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)


class Proxy:
    """Forwards every connection to a port of this machine."""

    def __init__(self, target: int, port: int | None = None) -> None:
        self.port = free_port() if port is None else port
        self._target = target
        self._listener: socket.socket | None = None
        self._connections: set[Connection] = set()
        self._lock = threading.Lock()
        self._cut: frozenset[Direction] = frozenset()

    def __enter__(self) -> Self:
        self._listener = socket.create_server((LOOPBACK, self.port))
        threading.Thread(target=self._accept, args=(self._listener,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._listener is not None:
            with suppress(OSError):
                self._listener.shutdown(socket.SHUT_RDWR)
            self._listener.close()
        self.drop_connections()

    def cut(self, *directions: Direction) -> None:
        """Swallow what goes in these directions; connections stay open, and nobody is told."""
        self._cut = frozenset(directions)

    def heal(self) -> None:
        """Forward again; a connection that lost something can't be trusted any more, and is ended."""
        self._cut = frozenset()
        for connection in self._open():
            if connection.lost_something:
                connection.close()

    def drop_connections(self) -> None:
        """End every connection; clients may connect again."""
        for connection in self._open():
            connection.close()

    def _open(self) -> list[Connection]:
        with self._lock:
            return list(self._connections)

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        """Pump both ways until one end is gone."""
        with client:
            try:
                target = socket.create_connection((LOOPBACK, self._target), _CONNECT_SECONDS)
                target.settimeout(None)
                connection = Connection(client, target)
            except OSError:
                return
            with target:
                for end in (client, target):
                    end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                with self._lock:
                    self._connections.add(connection)
                back = threading.Thread(target=self._pump, args=(connection, Direction.TO_CLIENT), daemon=True)
                back.start()
                self._pump(connection, Direction.TO_TARGET)
                back.join()
                with self._lock:
                    self._connections.discard(connection)

    def _pump(self, connection: Connection, direction: Direction) -> None:
        source, sink = connection.client, connection.target
        if direction is Direction.TO_CLIENT:
            source, sink = sink, source
        with suppress(OSError):
            for piece in self._pieces(source):
                if direction in self._cut:
                    connection.lost_something = True
                elif (passed := self._passed(connection, direction, piece)) is None:
                    break
                else:
                    sink.sendall(passed)
        connection.close()

    def _pieces(self, source: socket.socket) -> Iterator[bytes]:
        while piece := source.recv(_CHUNK_BYTES):
            yield piece

    def _passed(self, connection: Connection, direction: Direction, piece: bytes) -> bytes | None:
        """Return the part of the piece that goes on; if None, the connection ends."""
        return piece
