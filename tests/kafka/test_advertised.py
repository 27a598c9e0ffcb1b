"""Brokers that answer, and say that they are where nobody is."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from twopc.errors import ConfigurationError, Unavailable
from twopc.kafka.clients import answered
from twopc.kafka.clients.advertised import NamedBroker, unreached
from twopc.kafka.clients.connection import Connection
from twopc.kafka.clients.kafka_python import errors

NOWHERE = NamedBroker(1, "127.0.0.1", 1)
UNKNOWN = NamedBroker(2, "no-such-host.invalid", 9092)


@pytest.fixture
def there() -> Iterator[NamedBroker]:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield NamedBroker(3, "127.0.0.1", listening.getsockname()[1])


def test_the_address_that_was_learnt_is_named_with_the_setting_that_it_comes_from(there: NamedBroker) -> None:
    found = unreached(f"127.0.0.1:1, {there.address}", [NOWHERE, UNKNOWN])
    assert found is not None
    assert found.all_of_them
    assert str(found).startswith("they say that broker 1 is at 127.0.0.1:1, and nobody answers there (")
    assert "(and of 1 more)" in str(found)
    assert "advertised.listeners" in str(found)
    found = unreached(there.address, [there, NOWHERE])
    assert found is not None
    assert not found.all_of_them


def test_nothing_is_said_of_brokers_that_are_away_or_answer(there: NamedBroker) -> None:
    assert unreached("127.0.0.1:1", [NOWHERE]) is None, "nobody answers at all"
    assert unreached(there.address, [there]) is None
    assert unreached(there.address, []) is None, "nobody was named yet"


@pytest.mark.parametrize("has_worked", [False, True])
def test_where_no_broker_is_where_it_says_a_start_is_refused_and_what_has_worked_goes_on(
    there: NamedBroker, has_worked: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    servers = there.address
    monkeypatch.setattr(answered, "_answered", {servers} if has_worked else set())
    asked = Connection(servers, {})
    named = [SimpleNamespace(node_id="bootstrap-0", host="127.0.0.1", port=there.port)]
    named += [SimpleNamespace(node_id=NOWHERE.node, host=NOWHERE.host, port=NOWHERE.port)]
    client: Any = SimpleNamespace(_manager=SimpleNamespace(cluster=SimpleNamespace(brokers=lambda: named)))
    asked._client = client
    error = asked.failure_of(errors.NodeNotReadyError("1"))
    assert isinstance(error, Unavailable if has_worked else ConfigurationError)
    assert f"brokers at {servers} answer, but no request gets through" in str(error)
    assert "broker 1 is at 127.0.0.1:1" in str(error)
    other = asked.failure_of(errors.NotCoordinatorError())
    assert "gave no answer" in str(other)
