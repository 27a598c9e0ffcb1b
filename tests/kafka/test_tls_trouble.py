"""Why TLS fails is said in words, with the setting to look at."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.rpc.certificates import LOOPBACK, Authority
from twopc.kafka.tls_trouble import tls_trouble

Serve = Callable[[ssl.SSLContext | None], str]


@pytest.fixture(autouse=True)
def _patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every server here says something, or hangs up: however late."""
    for name in ("_SECONDS", "_ALERT_SECONDS"):
        monkeypatch.setattr(f"twopc.kafka.tls_trouble.{name}", 60.0)


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path, "authority")


@pytest.fixture
def sealed(authority: Authority) -> ssl.SSLContext:
    """A server's side that lets in whom the authority has signed."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    node = authority.issue("node", LOOPBACK)
    context.load_cert_chain(node.cert, node.key)
    context.load_verify_locations(authority.file)
    context.verify_mode = ssl.CERT_REQUIRED
    return context


@pytest.fixture
def serve() -> Iterator[Serve]:
    listening: list[socket.socket] = []

    def start(context: ssl.SSLContext | None) -> str:
        listener = socket.create_server(("127.0.0.1", 0))
        listening.append(listener)

        def accept() -> None:
            with suppress(OSError):
                while True:
                    client, _ = listener.accept()
                    with client, suppress(OSError):
                        if context is None:
                            client.recv(1)
                            continue
                        with context.wrap_socket(client, server_side=True) as spoken:
                            spoken.sendall(b"welcome")

        threading.Thread(target=accept, daemon=True).start()
        return f"127.0.0.1:{listener.getsockname()[1]}"

    yield start
    for listener in listening:
        with suppress(OSError):
            listener.shutdown(socket.SHUT_RDWR)
        listener.close()


def test_plain_talk_to_a_server_with_tls(serve: Serve, sealed: ssl.SSLContext) -> None:
    sealed.verify_mode = ssl.CERT_NONE
    assert "security.protocol" in tls_trouble(serve(sealed), {})


def test_a_server_whom_a_stranger_has_signed(serve: Serve, sealed: ssl.SSLContext, tmp_path: Path) -> None:
    stranger = Authority(tmp_path, "stranger")
    said = tls_trouble(serve(sealed), {"security_protocol": "SSL", "ssl_cafile": str(stranger.file)})
    assert "certificate is not trusted" in said
    assert "ssl.ca.location" in said


def test_a_client_that_is_not_let_in(serve: Serve, sealed: ssl.SSLContext, authority: Authority) -> None:
    said = tls_trouble(serve(sealed), {"security_protocol": "SSL", "ssl_cafile": str(authority.file)})
    assert "ssl.certificate.location" in said


def test_a_server_without_tls(serve: Serve, authority: Authority) -> None:
    assert tls_trouble(serve(None), {"security_protocol": "SSL", "ssl_cafile": str(authority.file)}) != ""


def test_nothing_is_said_where_nothing_is_wrong_or_nobody_is_there(
    serve: Serve, sealed: ssl.SSLContext, authority: Authority
) -> None:
    client = authority.issue("client", LOOPBACK)
    config = {"ssl_cafile": str(authority.file), "ssl_certfile": str(client.cert), "ssl_keyfile": str(client.key)}
    sealed.verify_mode = ssl.CERT_NONE
    assert tls_trouble(serve(sealed), {"security_protocol": "SSL", **config}) == ""
    assert tls_trouble("127.0.0.1:1", {"security_protocol": "SSL", **config}) == ""
    assert tls_trouble(serve(None), {}) == ""
