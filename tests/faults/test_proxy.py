"""The proxies, in front of a server that echoes: what passes, what is lost, and what becomes of the connection."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import suppress

import pytest

from twopc.faults.kafka_proxy import Api, Fate, KafkaProxy, Message, Rule
from twopc.faults.tcp_proxy import Direction, Proxy

PATIENCE_SECONDS = 60.0


@pytest.fixture
def echo() -> Iterator[int]:
    """A server that sends back what it gets; its port."""
    server = socket.create_server(("127.0.0.1", 0))

    def serve(connection: socket.socket) -> None:
        with connection, suppress(OSError):
            while piece := connection.recv(4_096):
                connection.sendall(piece)

    def accept() -> None:
        with suppress(OSError):
            while True:
                threading.Thread(target=serve, args=(server.accept()[0],), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    yield int(server.getsockname()[1])
    server.shutdown(socket.SHUT_RDWR)
    server.close()


def connected(proxy: Proxy) -> socket.socket:
    client = socket.create_connection(("127.0.0.1", proxy.port), PATIENCE_SECONDS)
    client.settimeout(PATIENCE_SECONDS)
    return client


def frame(api: Api, correlation: int, text: bytes = b"") -> bytes:
    """A request whose echo is read as a reply: what begins a request is the correlation id of a reply."""
    body = api.to_bytes(2, "big") + correlation.to_bytes(2, "big") + b"\0\0\0\0" + text
    return len(body).to_bytes(4, "big") + body


def answered(client: socket.socket, request: bytes) -> bool:
    client.sendall(request)
    got = b""
    while len(got) < len(request):
        piece = client.recv(4_096)
        if not piece:
            return False
        got += piece
    return got == request


def test_both_ways_are_forwarded(echo: int) -> None:
    with Proxy(echo) as proxy, connected(proxy) as client:
        assert answered(client, b"hello")


def test_a_cut_direction_swallows_and_keeps_the_connection_open(echo: int) -> None:
    with Proxy(echo) as proxy, connected(proxy) as client:
        proxy.cut(Direction.TO_CLIENT)
        client.sendall(b"hello")
        client.settimeout(0.1)
        with pytest.raises(TimeoutError):
            client.recv(10)


def test_what_lost_something_is_ended_when_the_proxy_heals_and_new_connections_work(echo: int) -> None:
    with Proxy(echo) as proxy, connected(proxy) as client:
        proxy.cut(Direction.TO_TARGET)
        client.sendall(b"hello")
        # Another connection, which has lost nothing, says when the proxy has read the first one's bytes.
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not any(each.lost_something for each in proxy._open()) and time.monotonic() < deadline:
            time.sleep(0.005)
        proxy.heal()
        assert client.recv(10) == b""
        with connected(proxy) as again:
            assert answered(again, b"again")


def test_nothing_is_served_after_the_proxy_is_gone(echo: int) -> None:
    with Proxy(echo) as proxy:
        client = connected(proxy)
        assert answered(client, b"hello")
    with client:
        assert client.recv(10) == b""
    with pytest.raises(OSError, match="refused"):
        socket.create_connection(("127.0.0.1", proxy.port), PATIENCE_SECONDS)


def test_a_rule_loses_one_request_with_its_connection_and_no_other(echo: int) -> None:
    heard: list[Message] = []
    with KafkaProxy(echo) as proxy, connected(proxy) as client:
        proxy.add(Rule(Api.END_TXN, Direction.TO_TARGET, Fate.DROP, then=heard.append))
        assert answered(client, frame(Api.PRODUCE, 1))
        assert not answered(client, frame(Api.END_TXN, 2))
        assert [(message.api, message.version) for message in heard] == [(Api.END_TXN, 2)]
        with connected(proxy) as again:
            assert answered(again, frame(Api.END_TXN, 3))


def test_frames_are_told_apart_however_the_bytes_arrive(echo: int) -> None:
    heard: list[Message] = []
    with KafkaProxy(echo) as proxy, connected(proxy) as client:
        proxy.add(Rule(Api.END_TXN, Direction.TO_TARGET, Fate.PASS, times=2, then=heard.append))
        sent = frame(Api.END_TXN, 1, b"x" * 100) + frame(Api.PRODUCE, 2) + frame(Api.END_TXN, 3)
        for start in range(0, len(sent), 7):
            client.sendall(sent[start : start + 7])
        got = b""
        while len(got) < len(sent):
            got += client.recv(4_096)
        assert got == sent
        assert [message.version for message in heard] == [1, 3]


def test_a_late_message_arrives_after_its_delay(echo: int) -> None:
    with KafkaProxy(echo) as proxy, connected(proxy) as client:
        proxy.add(Rule(Api.WRITE_TXN_MARKERS, Direction.TO_TARGET, Fate.DELAY, delay_seconds=0.2))
        began = time.monotonic()
        assert answered(client, frame(Api.WRITE_TXN_MARKERS, 1))
        assert time.monotonic() - began >= 0.2


def test_a_reply_is_known_by_the_request_that_it_answers(echo: int) -> None:
    # The echo's reply to a request begins with the request's own first bytes: its correlation id is api and version.
    request = Api.END_TXN.to_bytes(2, "big") + (1).to_bytes(2, "big") + Api.END_TXN.to_bytes(2, "big") + b"\0\1"
    whole = len(request).to_bytes(4, "big") + request
    with KafkaProxy(echo) as proxy, connected(proxy) as client:
        proxy.add(Rule(Api.END_TXN, Direction.TO_CLIENT, Fate.DROP))
        assert not answered(client, whole)
