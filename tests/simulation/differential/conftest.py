"""A real broker with either transaction protocol, and transactional ids whose epochs are nearly used up."""

from __future__ import annotations

import itertools
import uuid
from collections.abc import Iterator

import pytest
from kafka.protocol.producer import InitProducerIdRequest

from tests.simulation.differential.connection import Connection
from tests.simulation.differential.grounds import LANES, PROTOCOLS, Grounds, Held, set_protocol
from tests.simulation.differential.rollover import store
from tests.simulation.differential.steps import LONG_MS, NAMES, PARTITIONS
from tests.simulation.transaction_tables import LAST_PRODUCER_EPOCH
from twopc.testing.broker import Broker
from twopc.testing.topics import create_topic

EXHAUSTED = 40


@pytest.fixture(scope="session")
def grounds(broker: Broker) -> Grounds:
    topic = f"simbroker-{uuid.uuid4().hex[:8]}"
    create_topic(broker.bootstrap_servers, topic, PARTITIONS * LANES)
    return Grounds(broker.bootstrap_servers, topic, itertools.count())


@pytest.fixture
def protocol(request: pytest.FixtureRequest, grounds: Grounds) -> Iterator[int]:
    """The version of the transaction protocol that the broker has during the test; 2 is what it had before."""
    with grounds.connect() as connection:
        set_protocol(connection, request.param)
        yield request.param
        set_protocol(connection, max(PROTOCOLS))


@pytest.fixture(scope="session")
def exhausted(broker: Broker, grounds: Grounds) -> dict[int, list[Held]]:
    """By protocol: transactional ids, each on its own, that have few producer epochs left, or none."""
    with grounds.connect() as connection:
        held = {
            version: [_exhaust(connection, grounds, number) for number in range(EXHAUSTED)] for version in PROTOCOLS
        }
    rows = itertools.chain.from_iterable(held.values())
    late = {f"{prefix}-{name}": producer for prefix, holders in rows for name, producer in holders.items()}
    store(broker.bootstrap_servers, late, LONG_MS)
    broker.restart()
    return held


def _exhaust(connection: Connection, grounds: Grounds, number: int) -> Held:
    prefix = f"{grounds.topic}-late-{next(grounds.numbers)}"
    producer_epoch = LAST_PRODUCER_EPOCH - number % 3
    return prefix, {name: (_new_producer_id(connection, f"{prefix}-{name}"), producer_epoch) for name in NAMES}


def _new_producer_id(connection: Connection, transactional_id: str) -> int:
    request = InitProducerIdRequest(
        transactional_id=transactional_id, transaction_timeout_ms=LONG_MS, producer_id=-1, producer_epoch=-1
    )
    answer = connection.ask(request, 4)
    assert answer.error_code == 0, f"InitProducerId answered {answer.error_code}"
    return int(answer.producer_id)
