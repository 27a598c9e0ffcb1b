"""Serves metrics and health over HTTP: read only, on loopback unless told otherwise.

Invariants:
- on loopback only who calls it by a name of loopback is answered: a page in a browser whose own name was made to mean
  this machine is not;
- no more than `CONNECTIONS_MAX` connections are served at a time, and none for longer than it is silent for
  `SILENCE_SECONDS`.
"""

from __future__ import annotations

import ipaddress
import logging
import socket
import socketserver
import threading
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from typing import Any

from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder

from twopc.errors import ConfigurationError
from twopc.metrics.health import Health

CONNECTIONS_MAX = 16
SILENCE_SECONDS = 10.0

TEXT = "text/plain; charset=utf-8"

log = logging.getLogger(__name__)


class MetricsServer:
    """Answers while entered. Raises ConfigurationError if it can't listen there."""

    def __init__(self, host: str, port: int, registry: CollectorRegistry, health: Health) -> None:
        try:
            self._server = _Server(host, port, registry, health)
        except OSError as error:
            raise ConfigurationError(
                f"metrics can't be served on {host}:{port} ({error.strerror}): is the port in use, or the host not "
                "this machine's? Name another with --metrics-port or --metrics-host"
            ) from error
        self.address = f"{f'[{host}]' if ':' in host else host}:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, name="twopc-metrics", daemon=True)

    def __enter__(self) -> MetricsServer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class _Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True
    block_on_close = False

    def __init__(self, host: str, port: int, registry: CollectorRegistry, health: Health) -> None:
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self.registry = registry
        self.health = health
        self.is_on_loopback = _is_loopback(host)
        self._slots = threading.BoundedSemaphore(CONNECTIONS_MAX)
        super().__init__((host, port), _Handler)

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
        log.debug("a request for metrics was broken off", exc_info=True)


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    timeout = SILENCE_SECONDS
    server_version = "twopc"
    sys_version = ""

    def do_GET(self) -> None:
        if self.server.is_on_loopback and not _is_loopback(_host_of(self.headers.get("Host", ""))):
            self._answer(HTTPStatus.FORBIDDEN, "ask by a name of loopback: localhost, 127.0.0.1 or [::1]\n")
            return
        match self.path.partition("?")[0]:
            case "/metrics":
                encode, content_type = choose_encoder(self.headers.get("Accept", ""))
                self._send(HTTPStatus.OK, encode(self.server.registry), content_type)
            case "/healthz":
                self._tell(self.server.health.live())
            case "/readyz":
                self._tell(self.server.health.ready())
            case _:
                self._answer(HTTPStatus.NOT_FOUND, "there are /metrics, /healthz and /readyz\n")

    do_HEAD = do_GET  # noqa: N815  the name that the standard library calls

    def _tell(self, wrong: str) -> None:
        self._answer(HTTPStatus.SERVICE_UNAVAILABLE if wrong else HTTPStatus.OK, f"{wrong or 'ok'}\n")

    def _answer(self, status: HTTPStatus, text: str) -> None:
        self._send(status, text.encode(), TEXT)

    def _send(self, status: HTTPStatus, body: bytes, content_type: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "no-store")
        self.send_header("X-Content-Type-Options", "nosniff")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  the name that the standard library calls
        log.debug(format, *args)


def _host_of(header: str) -> str:
    """Return the host of a Host header, without its port."""
    return header[1:].partition("]")[0] if header.startswith("[") else header.partition(":")[0]


def _is_loopback(host: str) -> bool:
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
