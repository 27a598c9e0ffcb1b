"""Which addresses may be listened on."""

from __future__ import annotations

import pytest

from coordinator.access import check_address
from twopc.errors import ConfigurationError
from twopc.rpc.tls import TlsFiles


@pytest.mark.parametrize("address", ["127.0.0.1:0", "127.0.0.9:5000", "[::1]:0", "localhost:7070"])
def test_loopback_needs_no_token(address: str) -> None:
    check_address(address, token=None, tls=None, allow_insecure=False)


@pytest.mark.parametrize("address", ["0.0.0.0:0", "[::]:7070", "10.0.0.1:7070", "example.invalid:7070"])
def test_any_other_address_needs_a_token_or_the_flag_that_says_so(address: str) -> None:
    with pytest.raises(ConfigurationError, match="--allow-insecure"):
        check_address(address, token=None, tls=None, allow_insecure=False)
    check_address(address, token="secret", tls=None, allow_insecure=False)
    check_address(address, token=None, tls=None, allow_insecure=True)
    check_address(address, token=None, tls=TlsFiles("authority.pem"), allow_insecure=False)
    with pytest.raises(ConfigurationError, match="--tls-client-ca"):
        check_address(address, token=None, tls=TlsFiles("", "own.pem", "own.key"), allow_insecure=False)


@pytest.mark.parametrize("address", ["", "7070", ":7070"])
def test_an_address_without_a_host_is_refused(address: str) -> None:
    with pytest.raises(ConfigurationError, match="host:port"):
        check_address(address, token="secret", tls=None, allow_insecure=True)
