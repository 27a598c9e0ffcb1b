"""Answers over HTTP what some pages have: read only.

Invariants:
- who the door refuses is answered nothing else;
- no more than `CONNECTIONS_MAX` connections are served at a time, and none for longer than it is silent for
  `SILENCE_SECONDS`.
"""

from __future__ import annotations

import logging
import socket
import socketserver
import threading
from collections.abc import Sequence
from contextlib import closing
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from twopc.errors import ConfigurationError
from twopc.web.answer import Answer, EventStream, Pages, Question
from twopc.web.door import Door

CONNECTIONS_MAX = 16
SILENCE_SECONDS = 10.0

_NOTHING_ELSE = "frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
_HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": f"default-src 'self'; img-src 'self' data:; {_NOTHING_ELSE}",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}

log = logging.getLogger(__name__)


class WebServer:
    """Answers while entered. Raises ConfigurationError if it can't listen there, and names the options `what` has."""

    def __init__(self, what: str, door: Door, port: int, pages: Sequence[Pages]) -> None:
        host = door.host
        try:
            self._server = _Server(door, port, pages)
        except OSError as error:
            raise ConfigurationError(
                f"{what} can't be served on {host}:{port} ({error.strerror}): is the port in use, or the host not "
                f"this machine's? Name another with --{what}-port or --{what}-host"
            ) from error
        self.address = f"{f'[{host}]' if ':' in host else host}:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, name=f"twopc-{what}", daemon=True)

    def __enter__(self) -> WebServer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.ended.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class _Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True
    block_on_close = False

    def __init__(self, door: Door, port: int, pages: Sequence[Pages]) -> None:
        self.address_family = socket.AF_INET6 if ":" in door.host else socket.AF_INET
        self.door = door
        self.pages = pages
        self.ended = threading.Event()
        self._slots = threading.BoundedSemaphore(CONNECTIONS_MAX)
        super().__init__((door.host, port), _Handler)

    def answer(self, question: Question) -> Answer | EventStream:
        for pages in self.pages:
            answer = pages.answer(question)
            if answer is not None:
                return answer
        names = [name for pages in self.pages for name in pages.names]
        there = f"{', '.join(names[:-1])} and {names[-1]}" if names[1:] else "".join(names)
        return Answer.of_text(f"there are {there}", HTTPStatus.NOT_FOUND)

    def is_open(self, path: str) -> bool:
        """Whether anybody may ask for it."""
        return any(path in pages.open_names for pages in self.pages)

    def process_request(self, request: Any, client_address: Any) -> None:
        if self._slots.acquire(blocking=False):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._slots.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        log.debug("a request was broken off", exc_info=True)


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    timeout = SILENCE_SECONDS
    server_version = "twopc"
    sys_version = ""

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        parameters = {name: first for name, (first, *_) in parse_qs(parts.query, keep_blank_values=True).items()}
        path, door = unquote(parts.path), self.server.door
        refusal = door.refusal(self.headers, parameters, self.server.is_open(path))  # type: ignore[arg-type]
        if refusal is not None:
            self._send(refusal)
        elif cookie := door.cookie(parameters):
            # As it was written, with nothing decoded, and in this server: what a browser would take for a host is not.
            there = "/" + parts.path.lstrip("/\\")
            self._send(Answer(b"", status=HTTPStatus.SEE_OTHER), {"Location": there, "Set-Cookie": cookie})
        else:
            answer = self.server.answer(Question(path, parameters, self.headers.get("Accept", "")))
            if isinstance(answer, EventStream):
                self._pass_on(answer)
            else:
                self._send(answer)

    do_HEAD = do_GET  # noqa: N815  the name that the standard library calls

    def _send(self, answer: Answer, also: dict[str, str] | None = None) -> None:
        self.send_response(answer.status)
        length = {"Content-Type": answer.content_type, "Content-Length": str(len(answer.body))}
        for name, value in {**length, **_HEADERS, **(also or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(answer.body)

    def _pass_on(self, stream: EventStream) -> None:
        self.send_response(HTTPStatus.OK)
        for name, value in {"Content-Type": "text/event-stream", "Connection": "close", **_HEADERS}.items():
            self.send_header(name, value)
        self.end_headers()
        self.close_connection = True
        if self.command == "HEAD":
            return
        with closing(stream.events):  # type: ignore[type-var]
            for event in stream.events:
                if self.server.ended.is_set():
                    return
                self.wfile.write(event)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  the name that the standard library calls
        # The address may hold the token.
        log.debug("%s: %s", self.address_string(), self.command)
