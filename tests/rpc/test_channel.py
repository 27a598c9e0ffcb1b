from __future__ import annotations

import pytest

from twopc.errors import ConfigurationError
from twopc.rpc.channel import open_channel


@pytest.mark.parametrize("address", ["", "nonsense", "host", "host:", ":7070", "host:port"])
def test_what_is_no_address_is_refused_at_once(address: str) -> None:
    with pytest.raises(ConfigurationError, match="host:port"):
        open_channel(address)


@pytest.mark.parametrize("address", ["127.0.0.1:7070", "[::1]:7070", "coordinator.example:7070"])
def test_a_host_and_a_port_are_an_address(address: str) -> None:
    open_channel(address).close()
