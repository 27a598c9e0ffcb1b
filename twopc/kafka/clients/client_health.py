"""Notices a client that has forgotten every broker and will never ask for one again.

A cluster may say that it has no brokers: a lone one that has just started, or was starved of CPU, counts as fenced for
a moment. librdkafka then drops the brokers that it knew, and a client that must not bootstrap anew (`client_config`),
or whose version does not manage to (librdkafka issue 5301), waits for ever: nothing is sent, fails, or is read. What
heals it is another client; so the attempt fails, and the next one makes new ones.

Invariant: a client is given up only while another one, made at that moment, finds brokers where it finds none.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient

from twopc.errors import Unavailable
from twopc.kafka.clients.access import access_of
from twopc.kafka.clients.client_log import CLIENT_LOG

log = logging.getLogger(__name__)

CHECK_INTERVAL_SECONDS = 5.0
"""How long a client may be without brokers before the first check, and between two checks."""

FAILED_CHECKS_MAX = 3
"""How often another client must find brokers where this one finds none, which may only be about to connect again."""

OWN_ANSWER_SECONDS = 1.0
OTHER_ANSWER_SECONDS = 3.0


class Client(Protocol):
    """A producer, a consumer or an admin client of librdkafka."""

    def list_topics(self, *args: Any, **kwargs: Any) -> Any: ...


class BrokerHealthCheck:
    """Checks one client, on the thread that polls it; costs nothing until all of its brokers were down."""

    def __init__(self, config: Mapping[str, Any], make: Callable[[dict[str, Any]], Client] | None = None) -> None:
        self._config = {**access_of(config), "bootstrap.servers": config["bootstrap.servers"], "logger": CLIENT_LOG}
        self._make = make or AdminClient
        self._ask_at: float | None = None
        self._failed_checks = 0

    def on_error(self, error: KafkaError) -> None:
        """Receive an error that isn't fatal: librdkafka heals it, or fails records, or `check` finds it."""
        log.debug("Kafka client: %s", error)
        if error.code() == KafkaError._ALL_BROKERS_DOWN and self._ask_at is None:
            self._ask_at = time.monotonic() + CHECK_INTERVAL_SECONDS

    def check(self, client: Client) -> None:
        """Return at once unless there is doubt; raise Unavailable if the client is lost. May take four seconds."""
        if self._ask_at is None or time.monotonic() < self._ask_at:
            return
        if _finds_brokers(client, OWN_ANSWER_SECONDS):
            self._ask_at, self._failed_checks = None, 0
            return
        self._failed_checks += _finds_brokers(self._make(self._config), OTHER_ANSWER_SECONDS)
        if self._failed_checks >= FAILED_CHECKS_MAX:
            raise Unavailable(
                f"the Kafka client has lost all brokers of {self._config['bootstrap.servers']} and does not find them "
                "again, though they answer others: starting again with new clients"
            )
        self._ask_at = time.monotonic() + CHECK_INTERVAL_SECONDS


def _finds_brokers(client: Client, seconds: float) -> bool:
    try:
        return bool(client.list_topics(timeout=seconds).brokers)
    except KafkaException:
        return False
