"""A broker that answers what a client asks at first, and can be fenced: then it names no broker, not even itself.

It speaks as much of Kafka's protocol as an admin client needs to ask for metadata (ApiVersions 0 to 3, Metadata 4).
"""

from __future__ import annotations

import socket
import threading
from struct import pack, unpack, unpack_from

API_VERSIONS, METADATA = 18, 3
_SERVED = ((API_VERSIONS, 0, 3), (METADATA, 0, 4), (0, 0, 3), (1, 0, 4))
_UNKNOWN_TOPIC = 3


class FencedBroker:
    """Listens on loopback while entered."""

    def __init__(self) -> None:
        self.fenced = False
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._port: int = self._listener.getsockname()[1]
        self._connections: list[socket.socket] = []

    @property
    def servers(self) -> str:
        return f"127.0.0.1:{self._port}"

    def __enter__(self) -> FencedBroker:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.close()
        for connection in self._connections:
            connection.close()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self._connections.append(connection)
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        stream = connection.makefile("rb")
        try:
            while len(length := stream.read(4)) == 4:
                request = stream.read(unpack(">i", length)[0])
                key, version, correlation = unpack_from(">hhi", request)
                body = self._metadata(request) if key == METADATA else _versions(version)
                connection.sendall(pack(">ii", len(body) + 4, correlation) + body)
        except OSError:
            return

    def _metadata(self, request: bytes) -> bytes:
        """Say that nobody knows the topics that are asked for."""
        (client,) = unpack_from(">h", request, 8)
        at = 10 + client
        (count,) = unpack_from(">i", request, at)
        topics, at = b"", at + 4
        for _ in range(count):
            (length,) = unpack_from(">h", request, at)
            name, at = request[at : at + 2 + length], at + 2 + length
            topics += pack(">h", _UNKNOWN_TOPIC) + name + b"\0" + pack(">i", 0)
        return pack(">i", 0) + self._brokers() + pack(">i", max(count, 0)) + topics

    def _brokers(self) -> bytes:
        """The brokers, the cluster's id, and who is its controller."""
        if self.fenced:
            return pack(">ihi", 0, -1, -1)
        host = b"127.0.0.1"
        broker = pack(">ih", 1, len(host)) + host + pack(">ih", self._port, -1)
        return pack(">i", 1) + broker + pack(">h", 3) + b"one" + pack(">i", 1)


def _versions(version: int) -> bytes:
    if version < 3:
        return pack(">hi", 0, len(_SERVED)) + b"".join(pack(">hhh", *each) for each in _SERVED)
    served = b"".join(pack(">hhh", *each) + b"\0" for each in _SERVED)
    return pack(">h", 0) + bytes([len(_SERVED) + 1]) + served + pack(">i", 0) + b"\0"
