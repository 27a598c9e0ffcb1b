from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from coordinator.server import CoordinatorServer
from twopc.errors import ConfigurationError
from twopc.faults.tcp_proxy import Proxy
from twopc.rpc.admin_client import AdminClient
from twopc.rpc.channel import open_channel
from twopc.storage.local import LocalStore

SECONDS = 1.5
"""More than any pause between two tries to connect."""


class DistantProxy(Proxy):
    """In front of a server that is far away, or on a machine that has no time: its first word takes long."""

    def _pieces(self, source: socket.socket) -> Iterator[bytes]:
        time.sleep(SECONDS)
        return super()._pieces(source)


@pytest.mark.parametrize("address", ["", "nonsense", "host", "host:", ":7070", "host:port"])
def test_what_is_no_address_is_refused_at_once(address: str) -> None:
    with pytest.raises(ConfigurationError, match="host:port"):
        open_channel(address)


@pytest.mark.parametrize("address", ["127.0.0.1:7070", "[::1]:7070", "coordinator.example:7070"])
def test_a_host_and_a_port_are_an_address(address: str) -> None:
    open_channel(address).close()


def test_a_coordinator_whose_first_word_takes_long_is_reached(tmp_path: Path) -> None:
    server = CoordinatorServer(LocalStore(tmp_path), "127.0.0.1:0")
    port = int(server.start().rpartition(":")[2])
    try:
        with DistantProxy(port) as proxy, AdminClient(f"127.0.0.1:{proxy.port}") as client:
            assert client.jobs() == ()
    finally:
        server.stop()
