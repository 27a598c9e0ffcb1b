"""One blocking connection to a broker, over which any version of any request goes as it is: no retries, no checks."""

from __future__ import annotations

import socket
import struct
from typing import Any, Self

from kafka.protocol.api_header import ResponseClassRegistry

TIMEOUT_S = 60.0


class Connection:
    """`ask` sends a request and returns its answer, one at a time."""

    def __init__(self, bootstrap_servers: str, client: str = "simbroker") -> None:
        self._client = client
        host, _, port = bootstrap_servers.partition(",")[0].rpartition(":")
        self._socket = socket.create_connection((host, int(port)), TIMEOUT_S)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._correlation = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def ask(self, request: Any, version: int) -> Any:
        self._correlation += 1
        request.API_VERSION = version
        request.with_header(correlation_id=self._correlation, client_id=self._client)
        self._socket.sendall(request.encode(header=True, framed=True))
        (size,) = struct.unpack(">i", self._read(4))
        answer = ResponseClassRegistry.get_response_class(request.header)
        return answer.decode(self._read(size), header=True)

    def _read(self, count: int) -> bytes:
        data = bytearray()
        while len(data) < count:
            part = self._socket.recv(count - len(data))
            if not part:
                raise ConnectionError("the broker closed the connection")
            data += part
        return bytes(data)
