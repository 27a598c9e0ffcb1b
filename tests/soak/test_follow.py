"""The reader that follows a topic while it grows, on a real broker."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import closing

import pytest
from confluent_kafka import Producer

from tests.soak.follow import CaughtUp, follow
from twopc.testing.broker import Broker
from twopc.testing.topics import Read, Write, create_topic, produce

pytestmark = pytest.mark.broker


def open_transaction(broker: Broker, name: str) -> Producer:
    """A producer that has written "hidden" to the topic of this name, and not said what becomes of it."""
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "transactional.id": f"{name}-0"})
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(name, b"hidden", partition=1)
    assert producer.flush(30) == 0
    return producer


def until_caught_up(items: Generator[Read | CaughtUp | None], partition: int) -> list[bytes | None]:
    values: list[bytes | None] = []
    for item in items:
        if isinstance(item, Read):
            values.append(item.value)
        elif isinstance(item, CaughtUp) and item.partition == partition:
            break
    return values


def test_a_follower_sees_a_transaction_when_it_is_committed_and_goes_on_when_the_broker_came_back(
    broker: Broker, topic: Callable[[], str]
) -> None:
    name = topic()
    create_topic(broker.bootstrap_servers, name, 2)
    produce(broker.bootstrap_servers, name, [Write(b"before", partition=1)])
    with closing(follow(broker.bootstrap_servers, name, 2)) as items:
        producer = open_transaction(broker, name)
        assert until_caught_up(items, 1) == [b"before"]
        producer.commit_transaction(30)
        assert until_caught_up(items, 1) == [b"hidden"]
        broker.kill()
        broker.start()
        produce(broker.bootstrap_servers, name, [Write(b"later", partition=1)])
        assert until_caught_up(items, 1) == [b"later"]
