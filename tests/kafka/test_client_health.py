"""When a client of librdkafka is given up: only where another one finds what it does not."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from twopc.errors import Unavailable
from twopc.kafka.clients.client_health import CHECK_INTERVAL_SECONDS, FAILED_CHECKS_MAX, BrokerHealthCheck
from twopc.kafka.clients.client_log import CLIENT_LOG

CONFIG = {"bootstrap.servers": "b:1", "ssl.ca.location": "ca.pem", "linger.ms": 5, "transactional.id": "t"}


class FakeClient:
    """Finds so many brokers, or none and says so as librdkafka does."""

    def __init__(self, brokers: int | None) -> None:
        self.brokers = brokers
        self.asked = 0

    def list_topics(self, *, timeout: float) -> Any:
        self.asked += 1
        if self.brokers is None:
            raise KafkaException(KafkaError(KafkaError._TRANSPORT))
        return SimpleNamespace(brokers=dict.fromkeys(range(self.brokers)))


class Clock:
    now = 0.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr("twopc.kafka.clients.client_health.time", clock)
    return clock


def checked(health: BrokerHealthCheck, client: FakeClient, clock: Clock, times: int) -> None:
    for _ in range(times):
        clock.now += CHECK_INTERVAL_SECONDS
        health.check(client)


def all_down(health: BrokerHealthCheck) -> None:
    health.on_error(KafkaError(KafkaError._ALL_BROKERS_DOWN))


def test_a_client_that_never_lost_its_brokers_is_asked_nothing(clock: Clock) -> None:
    client = FakeClient(None)
    checked(BrokerHealthCheck(CONFIG, lambda _: FakeClient(1)), client, clock, 10)
    assert client.asked == 0


def test_a_client_that_finds_none_where_another_finds_some_is_given_up(clock: Clock) -> None:
    health = BrokerHealthCheck(CONFIG, lambda _: FakeClient(1))
    all_down(health)
    checked(health, FakeClient(None), clock, FAILED_CHECKS_MAX - 1)
    with pytest.raises(Unavailable, match=r"lost all brokers of b:1 .* starting again with new clients"):
        checked(health, FakeClient(None), clock, 1)


@pytest.mark.parametrize("others", [None, 0], ids=["nobody answers", "the cluster still has none"])
def test_a_client_is_kept_while_others_find_no_broker_either(clock: Clock, others: int | None) -> None:
    health = BrokerHealthCheck(CONFIG, lambda _: FakeClient(others))
    all_down(health)
    checked(health, FakeClient(None), clock, 10 * FAILED_CHECKS_MAX)


def test_a_client_that_was_told_of_no_brokers_counts_as_one_that_finds_none(clock: Clock) -> None:
    health = BrokerHealthCheck(CONFIG, lambda _: FakeClient(3))
    all_down(health)
    with pytest.raises(Unavailable):
        checked(health, FakeClient(0), clock, FAILED_CHECKS_MAX)


def test_a_client_that_found_its_brokers_again_starts_with_a_clean_sheet(clock: Clock) -> None:
    health = BrokerHealthCheck(CONFIG, lambda _: FakeClient(1))
    all_down(health)
    checked(health, FakeClient(None), clock, FAILED_CHECKS_MAX - 1)
    back = FakeClient(1)
    checked(health, back, clock, 2)
    all_down(health)
    checked(health, FakeClient(None), clock, FAILED_CHECKS_MAX - 1)
    assert back.asked == 1


def test_nothing_is_asked_before_a_client_had_time_to_connect_again(clock: Clock) -> None:
    health, client = BrokerHealthCheck(CONFIG, lambda _: FakeClient(1)), FakeClient(None)
    all_down(health)
    clock.now += CHECK_INTERVAL_SECONDS / 2
    all_down(health)
    health.check(client)
    assert client.asked == 0


def test_the_other_client_gets_in_as_this_one_does_and_takes_over_nothing_else(clock: Clock) -> None:
    made: list[dict[str, Any]] = []
    health = BrokerHealthCheck(CONFIG, lambda config: made.append(config) or FakeClient(1))  # type: ignore[func-returns-value]
    all_down(health)
    checked(health, FakeClient(None), clock, 1)
    [config] = made
    assert config.pop("logger") is CLIENT_LOG
    assert config == {"bootstrap.servers": "b:1", "ssl.ca.location": "ca.pem"}
