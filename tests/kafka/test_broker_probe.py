"""Whether brokers answer, asked so that no answer ends the process that asks."""

from __future__ import annotations

import pytest
from confluent_kafka.admin import AdminClient

from tests.kafka.fenced_broker import FencedBroker
from twopc.kafka.clients.broker_probe import NOBODYS_TOPIC, is_answered
from twopc.testing.broker import Broker
from twopc.testing.ports import free_port

SECONDS = 30.0


def asked(client: AdminClient, seconds: float = SECONDS) -> bool:
    return is_answered(client, request_seconds=seconds, patience_seconds=seconds)


def test_a_broker_that_is_fenced_and_names_none_does_not_end_who_asks() -> None:
    with FencedBroker() as broker:
        client = AdminClient({"bootstrap.servers": broker.servers, "log_level": 0})
        assert asked(client)
        broker.fenced = True
        # The first answer behind it may still be one; the next have nobody to come from.
        assert not all(asked(client, 1.0) for _ in range(3))


def test_nobody_answers_where_nobody_listens() -> None:
    client = AdminClient({"bootstrap.servers": f"127.0.0.1:{free_port()}", "log_level": 0})
    assert not asked(client, 0.5)


@pytest.mark.broker
def test_a_broker_answers_and_makes_no_topic_of_what_it_is_asked_for(broker: Broker) -> None:
    client = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    assert asked(client)
    assert NOBODYS_TOPIC not in client.list_topics(timeout=SECONDS).topics
