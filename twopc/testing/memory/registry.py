"""A schema registry for tests: Confluent's interface, on a port of this machine, with everything in memory.

It judges as a registry with compatibility BACKWARD does, for Avro; schemas of other types are compatible always. One
schema has one id under all subjects, and is the same however it is written (normalized).
"""

from __future__ import annotations

import base64
import json
import re
import ssl
import threading
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

from twopc.serde.avro_resolution import why_unreadable
from twopc.serde.avro_schema import prepared

LOOPBACK = "127.0.0.1"

Answer = tuple[int, Any]


class MemoryRegistry:
    """Use it as a context: it answers at `url` inside. `stop` and `start` let it be away; what it has stays.

    `login` is USER:PASSWORD, without which it refuses; `tls` makes it speak TLS.
    """

    def __init__(self, *, login: str | None = None, tls: ssl.SSLContext | None = None) -> None:
        self.requests: list[str] = []
        """The requests so far, as METHOD and path."""
        self._login = login
        self._tls = tls
        self._ids: dict[str, int] = {}
        self._schemas: dict[int, dict[str, Any]] = {}
        self._subjects: dict[str, list[int]] = {}
        self._lock = threading.Lock()
        self._port = 0
        self._server: ThreadingHTTPServer | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def url(self) -> str:
        return f"http{'s' if self._tls else ''}://{LOOPBACK}:{self._port}"

    def start(self) -> None:
        """Answer, at the address that it had before, if it had one."""
        server = ThreadingHTTPServer((LOOPBACK, self._port), _handler(self.answer))
        server.daemon_threads = True
        if self._tls is not None:
            server.socket = self._tls.wrap_socket(server.socket, server_side=True)
        self._server, self._port = server, server.server_address[1]
        threading.Thread(target=server.serve_forever, args=(0.02,), name="twopc-registry", daemon=True).start()

    def stop(self) -> None:
        """Be away: clients get no connection."""
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._server = None

    def register(self, subject: str, schema: Any, schema_type: str = "AVRO") -> int:
        """Register a schema, a dict, under a subject, whatever is there; return its id."""
        with self._lock:
            return self._register(subject, {"schema": json.dumps(schema), "schemaType": schema_type})

    def answer(self, method: str, path: str, login: str | None, body: Any) -> Answer | None:
        """Answer one request; None while it is away, though a connection be open."""
        with self._lock:
            if self._server is None:
                return None
            self.requests.append(f"{method} {path}")
            if self._login is not None and login != self._login:
                return 401, _error(401, "Unauthorized")
            for pattern, respond in self._routes.items():
                if match := re.fullmatch(pattern, f"{method} {path}"):
                    return respond(self, *match.groups(), *([body] if body is not None else []))
            return 404, _error(404, "HTTP 404 Not Found")

    def _by_id(self, schema_id: str) -> Answer:
        schema = self._schemas.get(int(schema_id))
        return (200, schema) if schema else (404, _error(40403, f"Schema {schema_id} not found"))

    def _version(self, subject: str, version: str) -> Answer:
        ids = self._subjects.get(subject)
        if not ids:
            return 404, _error(40401, f"Subject {subject!r} not found")
        number = len(ids) if version == "latest" else int(version)
        if not 0 < number <= len(ids):
            return 404, _error(40402, f"Version {version} not found")
        return 200, self._registered(subject, ids[number - 1])

    def _lookup(self, subject: str, body: Mapping[str, Any]) -> Answer:
        ids = self._subjects.get(subject)
        if not ids:
            return 404, _error(40401, f"Subject {subject!r} not found")
        schema_id = self._ids.get(_normalized(body))
        return (
            (200, self._registered(subject, schema_id))
            if schema_id in ids
            else (404, _error(40403, "Schema not found"))
        )

    def _add(self, subject: str, body: Mapping[str, Any]) -> Answer:
        if self._ids.get(_normalized(body)) not in self._subjects.get(subject, []):
            why = self._why_incompatible(subject, body)
            if why is not None:
                return 409, _error(409, f"Schema being registered is incompatible with an earlier schema: {why}")
        return 200, {"id": self._register(subject, body)}

    def _compatible(self, subject: str, body: Mapping[str, Any]) -> Answer:
        return 200, {"is_compatible": self._why_incompatible(subject, body) is None}

    def _register(self, subject: str, body: Mapping[str, Any]) -> int:
        schema_id = self._ids.setdefault(_normalized(body), len(self._ids) + 1)
        self._schemas.setdefault(schema_id, dict(body))
        ids = self._subjects.setdefault(subject, [])
        if schema_id not in ids:
            ids.append(schema_id)
        return schema_id

    def _registered(self, subject: str, schema_id: int) -> dict[str, Any]:
        version = self._subjects[subject].index(schema_id) + 1
        return {"subject": subject, "id": schema_id, "version": version, **self._schemas[schema_id]}

    def _why_incompatible(self, subject: str, body: Mapping[str, Any]) -> str | None:
        ids = self._subjects.get(subject, [])
        if not ids or _type_of(body) != "AVRO" or body.get("references"):
            return None
        latest = self._schemas[ids[-1]]
        if _type_of(latest) != "AVRO" or latest.get("references"):
            return None
        return why_unreadable(prepared(latest["schema"]).plain, prepared(body["schema"]).plain)

    _routes: Mapping[str, Callable[..., Answer]] = {
        r"GET /schemas/ids/(\d+)": _by_id,
        r"GET /subjects/([^/]+)/versions/(latest|\d+)": _version,
        r"POST /subjects/([^/]+)": _lookup,
        r"POST /subjects/([^/]+)/versions": _add,
        r"POST /compatibility/subjects/([^/]+)/versions/latest": _compatible,
    }


def _type_of(body: Mapping[str, Any]) -> str:
    return str(body.get("schemaType") or "AVRO")


def _normalized(body: Mapping[str, Any]) -> str:
    text = body["schema"]
    if _type_of(body) != "PROTOBUF":
        text = json.dumps(json.loads(text), sort_keys=True)
    return json.dumps([_type_of(body), text, body.get("references") or []], sort_keys=True)


def _error(code: int, message: str) -> dict[str, Any]:
    return {"error_code": code, "message": message}


def _handler(answer: Callable[[str, str, str | None, Any], Answer | None]) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self._respond()

        def do_POST(self) -> None:
            self._respond()

        def _respond(self) -> None:
            size = int(self.headers.get("Content-Length") or 0)
            body = json.loads(self.rfile.read(size)) if size else None
            answered = answer(self.command, self.path.partition("?")[0], self._login(), body)
            if answered is None:
                self.close_connection = True
                return
            status, reply = answered
            data = json.dumps(reply).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/vnd.schemaregistry.v1+json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def _login(self) -> str | None:
            kind, _, encoded = self.headers.get("Authorization", "").partition(" ")
            return base64.b64decode(encoded).decode() if kind == "Basic" else None

        def log_message(self, *_: object) -> None:
            """Say nothing: a test asks `requests`."""

    return Handler
