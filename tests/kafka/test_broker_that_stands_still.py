"""A broker that stands still accepts connections and says nothing; those beside it are asked."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from twopc.kafka.clients.connection import Connection
from twopc.testing.broker import Broker

pytestmark = pytest.mark.broker

TRIES = 6


@pytest.fixture
def still() -> Iterator[str]:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield f"127.0.0.1:{listening.getsockname()[1]}"


def test_one_that_drops_connections_is_not_waited_for(broker: Broker) -> None:
    """Its queue of connections is full, so the kernel answers nobody."""
    with socket.socket() as full, socket.socket() as one, socket.socket() as another:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        for filling in (one, another):
            filling.setblocking(False)
            filling.connect_ex(full.getsockname())
        for _ in range(TRIES):
            connection = Connection(f"127.0.0.1:{full.getsockname()[1]},{broker.bootstrap_servers}", {})
            try:
                assert connection.client() is not None
            finally:
                connection.close()


def test_who_answered_last_is_asked_first_from_then_on(
    broker: Broker, still: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    servers = f"{still},{broker.bootstrap_servers}"
    Connection(servers, {}).client().close()

    def of_all(servers: str) -> list[str]:
        raise AssertionError(f"all of {servers} were asked")

    monkeypatch.setattr("twopc.kafka.clients.connection.await_reachable", of_all)
    Connection(servers, {}).client().close()


def test_one_broker_that_answers_is_enough_whichever_is_asked_first(broker: Broker, still: str) -> None:
    for _ in range(TRIES):
        connection = Connection(f"{still},{broker.bootstrap_servers}", {})
        try:
            assert connection.client() is not None
        finally:
            connection.close()
