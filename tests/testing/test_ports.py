"""Ports for local brokers."""

from __future__ import annotations

import socket

import pytest

from twopc.errors import Unavailable
from twopc.testing.ports import free_port, free_ports, is_free


def test_a_port_that_a_server_listens_on_is_not_free() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        assert not is_free(server.getsockname()[1])


def test_a_free_port_is_none_of_those_that_outgoing_connections_use() -> None:
    port = free_port()
    assert is_free(port)
    # The lowest first port of that range among the systems that Kafka is run on.
    assert port < 32_768


def test_a_free_port_is_none_of_those_to_avoid() -> None:
    only = free_port()
    assert free_port(avoid=set(range(65_536)) - {only}) == only
    with pytest.raises(Unavailable, match="no port is free"):
        free_port(avoid=range(65_536))


def test_a_free_port_is_one_of_the_share_that_the_environment_names(monkeypatch: pytest.MonkeyPatch) -> None:
    only = free_port()
    monkeypatch.setenv("TWOPC_PORTS", f"{only}-{only}")
    assert free_port() == only


def test_several_free_ports_are_all_different_and_none_of_those_to_avoid() -> None:
    first = free_ports(3)
    assert len({*first, *free_ports(3, avoid=first)}) == 6


def test_a_port_is_given_again_when_no_other_is_free(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TWOPC_PORTS", "31000-31059")
    assert len({free_port() for _ in range(30)}) == 30
    assert all(free_port() for _ in range(60))
