"""A broker that stands still accepts connections and says nothing; those beside it are asked."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from twopc.kafka.connection import Connection
from twopc.testing.broker import Broker

pytestmark = pytest.mark.broker

TRIES = 6


@pytest.fixture
def still() -> Iterator[str]:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield f"127.0.0.1:{listening.getsockname()[1]}"


def test_one_broker_that_answers_is_enough_whichever_is_asked_first(broker: Broker, still: str) -> None:
    for _ in range(TRIES):
        connection = Connection(f"{still},{broker.bootstrap_servers}", {})
        try:
            assert connection.client() is not None
        finally:
            connection.close()
