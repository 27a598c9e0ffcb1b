"""A connection without traffic is closed before a firewall forgets it, and made anew without a word."""

from __future__ import annotations

from functools import partial

import psutil
import pytest
from confluent_kafka import Producer

from tests.kafka.kit import eventually
from twopc.kafka.clients import connection
from twopc.kafka.clients.client_config import CONNECTION_IDLE_MS, consumer_config, producer_config
from twopc.kafka.clients.control_client import ControlClient
from twopc.testing.broker import Broker
from twopc.testing.topics import create_topic

FORGOTTEN_MS = 60_000
"""The least after which a firewall was seen to forget a connection."""
SHORT_MS = 1_000


def test_both_clients_close_idle_connections_sooner_than_firewalls_forget_them() -> None:
    configs = (consumer_config("any", "group", {}), producer_config("any", {}))
    assert [config["connections.max.idle.ms"] for config in configs] == [CONNECTION_IDLE_MS] * 2
    assert CONNECTION_IDLE_MS * 2 <= FORGOTTEN_MS


def test_a_job_may_say_after_which_time_its_own_are_closed() -> None:
    said = {"connections.max.idle.ms": 5_000}
    assert consumer_config("any", "group", said) | said == consumer_config("any", "group", said)
    assert producer_config("any", said) | said == producer_config("any", said)


@pytest.mark.proof
@pytest.mark.broker
def test_the_next_record_and_question_after_idle_connections_were_closed_get_through_and_nobody_is_told_of_an_error(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    create_topic(broker.bootstrap_servers, "idle")
    errors: list[object] = []
    of_others = connections(broker)
    settings = producer_config(broker.bootstrap_servers, {"connections.max.idle.ms": SHORT_MS})
    producer = Producer({**settings, "error_cb": errors.append})
    monkeypatch.setattr(connection, "CONNECTION_IDLE_MS", SHORT_MS)
    with ControlClient(broker.bootstrap_servers, {}) as client:
        for _ in range(2):
            producer.produce("idle", b"record")
            assert producer.flush(30) == 0
            assert "idle" in client.topic_names()
            opened = connections(broker) - of_others
            eventually(partial(are_closed, producer, broker, opened))
    assert errors == []


def are_closed(producer: Producer, broker: Broker, opened: set[int]) -> bool:
    return producer.poll(0) == 0 and not opened & connections(broker)


def connections(broker: Broker) -> set[int]:
    """The local ports of this process's connections to the broker."""
    port = int(broker.bootstrap_servers.rpartition(":")[2])
    every = psutil.Process().net_connections("tcp")
    return {each.laddr.port for each in every if each.raddr and each.raddr.port == port}
