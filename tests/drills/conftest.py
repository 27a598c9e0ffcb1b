"""What drills share: a broker that can be reached directly, and through a proxy that loses what it is told to."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from twopc.crashpoints import REACHED_VARIABLE
from twopc.testing.kafka_proxy import KafkaProxy
from twopc.testing.local_broker import LocalBroker


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalBroker]:
    """A running broker; `proxied_servers` work while there is a proxy."""
    made = LocalBroker(tmp_path_factory.mktemp("broker"), proxied=True, light=True)
    with KafkaProxy(made.proxy_routes[0].listens, made.proxy_routes[0].advertised) as proxy, made as running:
        _PROXIES[running] = proxy
        yield running


@pytest.fixture(scope="session")
def proxy(broker: LocalBroker) -> KafkaProxy:
    """What stands in front of `broker.proxied_servers`."""
    return _PROXIES[broker]


@pytest.fixture(scope="session")
def reached_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Where every process notes the crash points that it came to."""
    folder = tmp_path_factory.mktemp("reached")
    before = os.environ.get(REACHED_VARIABLE)
    os.environ[REACHED_VARIABLE] = str(folder)
    yield folder
    if before is None:
        del os.environ[REACHED_VARIABLE]
    else:
        os.environ[REACHED_VARIABLE] = before


_PROXIES: dict[LocalBroker, KafkaProxy] = {}
