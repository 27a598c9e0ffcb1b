"""A fake of Google Cloud Storage, as far as a checkpoint store asks for it: in this process, with no server.

It stands in for a server that can't be had here, and shows what is sent and how answers are read, not what Google does.
As its reference says, `x-goog-if-generation-match: 0` writes only what is not there, and is answered with 412 else.
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Self
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

from twopc.testing.broker_settings import LOOPBACK

BUCKET = "checkpoints"
PAGE_NAMES = 50
_MODIFIED_ISO, _MODIFIED = "2026-11-23T00:00:00.000Z", "Mon, 23 Nov 2026 00:00:00 GMT"


class GoogleStandIn:
    """One bucket; leaving the context ends it. `conditions` are those of the writes that had one."""

    def __init__(self) -> None:
        self.objects: dict[str, bytes] = {}
        self.conditions: list[str] = []
        self._lock = threading.Lock()
        self._server = ThreadingHTTPServer((LOOPBACK, 0), type("Answering", (_Answering,), {"bucket": self}))

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, name="google", daemon=True).start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._server.shutdown()
        self._server.server_close()

    def environment(self) -> Mapping[str, str]:
        """What a process needs to find it; a key of nobody, since none is asked for."""
        key = {"client_email": "", "private_key": "", "private_key_id": "", "disable_oauth": True}
        where = {"gcs_base_url": f"http://{LOOPBACK}:{self._server.server_port}"}
        return {"GOOGLE_SERVICE_ACCOUNT_KEY": json.dumps(key | where), "GOOGLE_ALLOW_HTTP": "true"}

    def url(self, prefix: str) -> str:
        return f"gs://{BUCKET}/{prefix}"

    def write(self, name: str, data: bytes, condition: str | None) -> bool:
        """Store an object, unless its condition says that it must not be there."""
        with self._lock:
            if condition is not None:
                self.conditions.append(condition)
            if condition == "0" and name in self.objects:
                return False
            self.objects[name] = data
            return True

    def page(self, prefix: str, delimiter: str, after: str) -> tuple[list[str], list[str], str]:
        """Return names, common prefixes, and after what the next page begins; '' if there is none."""
        names: list[str] = []
        prefixes: list[str] = []
        for name in sorted(self.objects.copy()):
            if not name.startswith(prefix) or name <= after or (prefixes and name.startswith(prefixes[-1])):
                continue
            if len(names) + len(prefixes) == PAGE_NAMES:
                return names, prefixes, max(names[-1:] + [each + "\uffff" for each in prefixes[-1:]])
            head, found, _ = name[len(prefix) :].partition(delimiter) if delimiter else ("", "", "")
            if found:
                prefixes.append(f"{prefix}{head}{delimiter}")
            else:
                names.append(name)
        return names, prefixes, ""


class _Answering(BaseHTTPRequestHandler):
    bucket: GoogleStandIn
    protocol_version = "HTTP/1.1"

    def do_PUT(self) -> None:
        data = self.rfile.read(int(self.headers["Content-Length"]))
        stored = self.bucket.write(self._name, data, self.headers["x-goog-if-generation-match"])
        self._answer(200 if stored else 412, etag=_etag(data))

    def do_GET(self) -> None:
        if self._name:
            data = self.bucket.objects.get(self._name)
            self._answer(404) if data is None else self._answer(200, data, etag=_etag(data))
            return
        asked = {name: values[0] for name, values in parse_qs(urlsplit(self.path).query).items()}
        after = asked.get("continuation-token", "")
        listed = self.bucket.page(asked.get("prefix", ""), asked.get("delimiter", ""), after)
        self._answer(200, self._listing(*listed))

    def do_DELETE(self) -> None:
        self._answer(204 if self.bucket.objects.pop(self._name, None) is not None else 404)

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        """Nothing."""

    @property
    def _name(self) -> str:
        return unquote(urlsplit(self.path).path).removeprefix(f"/{BUCKET}").removeprefix("/")

    def _listing(self, names: list[str], prefixes: list[str], following: str) -> bytes:
        objects = "".join(
            f"<Contents><Key>{escape(name)}</Key><LastModified>{_MODIFIED_ISO}</LastModified>"
            f"<Size>{len(self.bucket.objects.get(name, b''))}</Size><ETag>x</ETag></Contents>"
            for name in names
        )
        folders = "".join(f"<CommonPrefixes><Prefix>{escape(each)}</Prefix></CommonPrefixes>" for each in prefixes)
        more = f"<NextContinuationToken>{escape(following)}</NextContinuationToken>" if following else ""
        return f"<ListBucketResult>{objects}{folders}{more}</ListBucketResult>".encode()

    def _answer(self, status: int, data: bytes = b"", etag: str = "") -> None:
        self.send_response(status)
        headers = {"Content-Length": str(len(data)), "Last-Modified": _MODIFIED} | ({"ETag": etag} if etag else {})
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)


def _etag(data: bytes) -> str:
    return f'"{hashlib.sha256(data).hexdigest()}"'
