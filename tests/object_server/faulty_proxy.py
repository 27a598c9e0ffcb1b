"""A proxy between a client and its object store: it loses an answer, says 503, or says nothing any more."""

from __future__ import annotations

import re
from enum import Enum

from twopc.faults.tcp_proxy import Connection, Direction, Proxy

_REQUEST = re.compile(rb"([A-Z]+) /\S* HTTP/1\.1\r\n")
_SLOW_DOWN = b"HTTP/1.1 503 Slow Down\r\nContent-Length: 0\r\n\r\n"


class Answer(Enum):
    """The answer that the client gets to a request that the server has carried out."""

    LOST = "the connection ends"
    SLOW_DOWN = "503"


class ObjectProxy(Proxy):
    """Strikes the next requests of a method, so many of them, after the server has done what they say."""

    def __init__(self, target: int) -> None:
        super().__init__(target)
        self.requests: list[str] = []
        self._method = ""
        self._answer = Answer.LOST
        self._left = 0
        self._struck: set[Connection] = set()

    def strike(self, method: str, answer: Answer, times: int = 1) -> None:
        self._method, self._answer, self._left = method, answer, times

    def _passed(self, connection: Connection, direction: Direction, piece: bytes) -> bytes | None:
        if direction is Direction.TO_TARGET:
            for method in _REQUEST.findall(piece):
                self._note(connection, method.decode())
            return piece
        if connection not in self._struck:
            return piece
        if piece.startswith(b"HTTP/1.1 100"):
            # The client is told to go on with its body.
            return piece
        self._struck.discard(connection)
        return None if self._answer is Answer.LOST else _SLOW_DOWN

    def _note(self, connection: Connection, method: str) -> None:
        self.requests.append(method)
        if method == self._method and self._left:
            self._left -= 1
            self._struck.add(connection)
