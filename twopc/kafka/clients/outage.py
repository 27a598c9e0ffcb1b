"""The outage of brokers: logged once when they are away, and once when they are back, for all clients of a job.

Every client sees an outage in its own way and time, a dozen of them in each worker. So nobody says it but the driver,
which asks for itself: one small question every two seconds, by a client that does nothing else.

Invariants:

- Brokers are called away only after a client that knew them and a new one both got no answer.
- Who never answered anybody of this process is not said to be away: the address may be another's.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient

from twopc.kafka.clients.access import access_of
from twopc.kafka.clients.answered import has_answered, note_answer
from twopc.kafka.clients.broker_probe import is_answered
from twopc.kafka.clients.client_log import CLIENT_LOG, WARNINGS_ONLY
from twopc.kafka.clients.connection_diagnosis import essence

log = logging.getLogger(__name__)

PAUSE_SECONDS = 2.0
KNOWN_SECONDS = 2.0
"""How long a client that knows the brokers may wait for an answer; a new one has to connect first."""
NEW_SECONDS = 4.0

_Settings = tuple[str, frozenset[tuple[str, str]]]
_watches: dict[_Settings, tuple[BrokerWatch, int]] = {}
_lock = threading.Lock()
_driver_speaks = False


class BrokerWatch:
    """Asks the brokers of one cluster, on a thread of its own, until it is closed."""

    def __init__(self, servers: str, properties: Mapping[str, Any], say: Callable[[str], None] = log.warning) -> None:
        self._servers = servers
        self._config = {**access_of(properties), "bootstrap.servers": servers, "logger": CLIENT_LOG}
        self._say = say
        self._closing = threading.Event()
        self._reason = ""
        self._thread = threading.Thread(target=self._run, name="twopc-broker-watch", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End soon. A question that is under way is left to itself."""
        self._closing.set()

    def _run(self) -> None:
        # Settings that make no client are refused elsewhere, in words.
        with suppress(KafkaException):
            self._watch(self._new_client())

    def _watch(self, client: AdminClient) -> None:
        answered, since = time.time(), ""
        while not self._closing.wait(PAUSE_SECONDS):
            if not self._answers(client, KNOWN_SECONDS):
                client = self._new_client()
                if not self._answers(client, NEW_SECONDS):
                    if not since and not self._closing.is_set():
                        since = time.strftime("%H:%M:%S", time.localtime(answered))
                        self._say_away(since)
                    continue
            if since:
                away = time.time() - answered
                self._say(f"the Kafka brokers at {self._servers} answer again; they were away for {away:.0f} s")
            answered, since = time.time(), ""
            note_answer(self._servers)

    def _say_away(self, since: str) -> None:
        why = f" ({self._reason})" if self._reason else ""
        self._say(
            f"no Kafka broker at {self._servers} has answered since {since}{why}: the job waits, and goes on by itself "
            "when they are back"
            if has_answered(self._servers)
            else f"no Kafka broker has answered at {self._servers} yet{why}: is that their address?"
        )

    def _new_client(self) -> AdminClient:
        config: dict[str, Any] = {**self._config, "error_cb": self._note, "log_level": WARNINGS_ONLY}
        return AdminClient(config)

    def _note(self, error: KafkaError) -> None:
        if error.code() != KafkaError._ALL_BROKERS_DOWN:
            self._reason = essence(error.str())

    def _answers(self, client: AdminClient, seconds: float) -> bool:
        answered = is_answered(client, request_seconds=seconds, patience_seconds=seconds)
        client.poll(0)
        return answered


@contextmanager
def watched(servers: str, properties: Mapping[str, Any]) -> Iterator[None]:
    """Watch a cluster meanwhile; who asks for the same one twice has it watched once."""
    settings = (servers, frozenset((name, str(value)) for name, value in access_of(properties).items()))
    with _lock:
        watch, users = _watches.get(settings) or (BrokerWatch(servers, properties), 0)
        _watches[settings] = (watch, users + 1)
    try:
        yield
    finally:
        with _lock:
            watch, users = _watches.pop(settings)
            if users > 1:
                _watches[settings] = (watch, users - 1)
            else:
                watch.close()


def leave_to_driver() -> None:
    """In a subtask: the driver says when brokers are away, so that nobody here has to."""
    global _driver_speaks
    _driver_speaks = True


def is_spoken_for() -> bool:
    """Whether somebody else says that brokers are away."""
    return _driver_speaks or bool(_watches)
