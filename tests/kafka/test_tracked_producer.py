"""What a tracked producer waits for before its client may be asked for transactions."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from twopc.errors import Unavailable
from twopc.kafka.clients.client_config import producer_config
from twopc.kafka.output import tracked_producer as module
from twopc.kafka.output.tracked_producer import TrackedProducer

BOOTSTRAP, BROKER = -1, 1


class FakeProducer:
    """Is answered by these, one after the other; by the last one from then on."""

    def __init__(self, answers: Sequence[int]) -> None:
        self._answers = list(answers)
        self.asked: list[str | None] = []

    def list_topics(self, topic: str | None, *, timeout: float) -> Any:
        self.asked.append(topic)
        if not self._answers:
            raise KafkaException(KafkaError(KafkaError._TRANSPORT))
        answered_by = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        return SimpleNamespace(orig_broker_id=answered_by)


def tracked_producer_of(*answers: int) -> tuple[TrackedProducer, FakeProducer]:
    tracked, producer = TrackedProducer(producer_config("127.0.0.1:1", {})), FakeProducer(answers)
    tracked.client = producer  # type: ignore[assignment]
    return tracked, producer


def test_an_answer_of_a_bootstrap_server_is_not_yet_one_of_a_broker() -> None:
    tracked, producer = tracked_producer_of(BOOTSTRAP, BOOTSTRAP, BROKER)
    tracked.await_broker("out")
    assert producer.asked == ["out"] * 3


def test_a_sink_without_a_topic_yet_asks_about_the_cluster() -> None:
    tracked, producer = tracked_producer_of(BROKER)
    tracked.await_broker(None)
    assert producer.asked == [None]


def test_a_cluster_of_which_only_bootstrap_servers_answer_is_not_waited_for_without_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "BROKER_PAUSE_SECONDS", 0)
    tracked, producer = tracked_producer_of(BOOTSTRAP)
    tracked.await_broker("out")
    assert len(producer.asked) == module.BROKER_QUESTIONS


def test_brokers_that_do_not_answer_are_unavailable() -> None:
    tracked, _ = tracked_producer_of()
    with pytest.raises(Unavailable, match="metadata of topic out"):
        tracked.await_broker("out")


def test_a_topic_is_asked_about_once() -> None:
    tracked, producer = tracked_producer_of(BOOTSTRAP)
    tracked.know("out")
    tracked.know("out")
    assert producer.asked == ["out"]
