"""What is said of brokers that do not answer: whether they ever did makes the difference."""

from __future__ import annotations

import queue
from uuid import uuid4

import pytest
from confluent_kafka.admin import AdminClient

from twopc.kafka.clients import outage
from twopc.kafka.clients.answered import note_answer
from twopc.kafka.clients.outage import BrokerWatch


class ScriptedWatch(BrokerWatch):
    """Is answered as the script says, and never asks anybody."""

    def __init__(self, servers: str, script: list[bool]) -> None:
        self.said: queue.Queue[str] = queue.Queue()
        self._script = iter(script)
        super().__init__(servers, {}, self.said.put)

    def _new_client(self) -> AdminClient:
        return None  # type: ignore[return-value]

    def _answers(self, client: AdminClient, seconds: float) -> bool:
        return next(self._script, False)


@pytest.fixture
def servers(monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(outage, "PAUSE_SECONDS", 0)
    return f"{uuid4().hex}:9092"


def first_word(servers: str, script: list[bool]) -> str:
    watch = ScriptedWatch(servers, script)
    try:
        return watch.said.get(timeout=60)
    finally:
        watch.close()


def test_brokers_that_never_answered_are_not_said_to_come_back(servers: str) -> None:
    assert first_word(servers, []) == f"no Kafka broker has answered at {servers} yet: is that their address?"


def test_brokers_that_the_job_has_had_an_answer_of_are_away(servers: str) -> None:
    note_answer(servers)
    assert "the job waits, and goes on by itself when they are back" in first_word(servers, [])


def test_brokers_that_the_watch_has_had_an_answer_of_are_away(servers: str) -> None:
    assert f"no Kafka broker at {servers} has answered since" in first_word(servers, [True])
