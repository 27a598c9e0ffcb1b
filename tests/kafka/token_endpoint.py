"""The token endpoint of OAuth clients, on loopback: the local broker takes its tokens, which nobody has signed."""

from __future__ import annotations

import base64
import json
import threading
import time
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

LIFETIME_SECONDS = 3_600


class TokenEndpoint:
    """Gives a token to each of `clients`, by id and secret; enter it, and it listens."""

    def __init__(self, clients: Mapping[str, str]) -> None:
        logins = {base64.b64encode(f"{name}:{secret}".encode()).decode(): name for name, secret in clients.items()}
        given = self.given = []

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                self.rfile.read(int(self.headers.get("Content-Length", 0)))
                name = logins.get(self.headers.get("Authorization", "").removeprefix("Basic "))
                if name is None:
                    self._answer(401, {"error": "invalid_client"})
                    return
                given.append(name)
                self._answer(
                    200, {"access_token": _token(name), "token_type": "Bearer", "expires_in": LIFETIME_SECONDS}
                )

            def _answer(self, status: int, body: Mapping[str, Any]) -> None:
                data = json.dumps(body).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name that http.server has
                """Say nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}/token"

    given: list[str]
    """To whom, in order."""

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, name="twopc-token-endpoint", daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()


def _token(subject: str) -> str:
    now = int(time.time())
    claims = {"sub": subject, "iat": now - 1, "exp": now + LIFETIME_SECONDS}
    return f"{_encoded({'alg': 'none', 'typ': 'JWT'})}.{_encoded(claims)}."


def _encoded(part: Mapping[str, Any]) -> str:
    return base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=")
