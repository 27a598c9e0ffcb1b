"""The contract of a broker, held by each implementation that this machine can run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer

from twopc.testing.broker import Broker
from twopc.testing.container_broker import ContainerBroker, why_not
from twopc.testing.local_broker import LocalBroker
from twopc.testing.topics import create_topic, produce, read_topic

pytestmark = pytest.mark.broker


@pytest.fixture(params=["local", "container"])
def own_broker(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Broker]:
    """A running broker that the test has for itself."""
    reason = why_not() if request.param == "container" else None
    if reason is not None:
        pytest.skip(reason)
    made: Broker = LocalBroker(tmp_path) if request.param == "local" else ContainerBroker()
    with made:
        yield made


def begin(broker: Broker, name: str, topic: str) -> Producer:
    """A producer with one record in an open transaction."""
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "transactional.id": name})
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(topic, b"in a transaction")
    producer.flush(30)
    return producer


@pytest.mark.proof
def test_data_and_address_survive_kill_and_stop(own_broker: Broker, topic: Callable[[], str]) -> None:
    name, address = topic(), own_broker.bootstrap_servers
    create_topic(address, name, 2)
    produce(address, name, [b"before"])
    own_broker.kill()
    own_broker.kill()
    own_broker.start()
    produce(own_broker.bootstrap_servers, name, [b"after"])
    own_broker.restart()
    own_broker.start()
    assert own_broker.bootstrap_servers == address
    assert sorted(record.value or b"" for record in read_topic(address, name)) == [b"after", b"before"]


@pytest.mark.proof
def test_transactions_are_ready_and_hide_what_is_not_committed(own_broker: Broker, topic: Callable[[], str]) -> None:
    address, name = own_broker.bootstrap_servers, topic()
    create_topic(address, name)
    producer = begin(own_broker, name, name)
    assert read_topic(address, name) == []
    assert len(read_topic(address, name, isolation="read_uncommitted")) == 1
    producer.commit_transaction(30)
    assert [record.value for record in read_topic(address, name)] == [b"in a transaction"]
