"""The fixtures of drills: a broker that can be reached directly, and through a proxy that loses what it is told to."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.crash_cells.rig import Rig, load_changes, load_input
from twopc.faults.kafka_proxy import KafkaProxy
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
def rig_input(broker: LocalBroker) -> str:
    """An input that is there already; every drill writes to an output of its own."""
    name = f"drill-{uuid.uuid4().hex[:6]}-in"
    load_input(broker.bootstrap_servers, name)
    load_changes(broker.bootstrap_servers, name)
    return name


@pytest.fixture
def rig(broker: LocalBroker, rig_input: str, tmp_path: Path, topic: Callable[[], str]) -> Rig:
    """A job of its own on that input."""
    made = Rig(broker.bootstrap_servers, tmp_path, topic(), rig_input)
    made.create_output()
    return made


_PROXIES: dict[LocalBroker, KafkaProxy] = {}
