"""Every record that a TopicWriter took has arrived when it is finished, or the error says how many did not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from unittest.mock import MagicMock

import pytest

from twopc.errors import Unavailable
from twopc.kafka.clients.cluster import Cluster
from twopc.kafka.output.topic_writer import TopicWriter


class FakeProducer:
    """Has room for one record; a poll makes room; a delivery fails where the value says so."""

    def __init__(self, config: dict[str, Any]) -> None:
        self._report: Callable[[object, object], None] = config["on_delivery"]
        self._waiting: list[bytes] = []
        self.sent: list[tuple[bytes, bytes | None]] = []

    def produce(self, topic: str, value: bytes, key: bytes | None) -> None:
        if self._waiting:
            raise BufferError
        self._waiting.append(value)
        self.sent.append((value, key))

    def poll(self, seconds: float) -> None:
        for value in self._waiting:
            if value == b"refused":
                self._report("too large", MagicMock())
        self._waiting.clear()

    def flush(self, seconds: float) -> int:
        left = self._waiting.count(b"late")
        self.poll(seconds)
        return left


@pytest.fixture
def writer(monkeypatch: pytest.MonkeyPatch) -> TopicWriter:
    monkeypatch.setattr("twopc.kafka.output.topic_writer.Producer", FakeProducer)
    return TopicWriter(Cluster("there:1"))


def test_a_record_waits_for_room_and_keeps_its_place(writer: TopicWriter) -> None:
    for number in range(3):
        writer.write("topic", b"%d" % number, b"key")
    assert writer.finish() == 3
    assert writer._producer.sent == [(b"0", b"key"), (b"1", b"key"), (b"2", b"key")]  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("value", "reason"), [(b"refused", "too large"), (b"late", "no broker has taken them within 120 s")]
)
def test_a_record_that_did_not_arrive_is_counted_and_refuses_the_end(
    writer: TopicWriter, value: bytes, reason: str
) -> None:
    writer.write("topic", b"fine")
    writer.write("topic", value)
    with pytest.raises(Unavailable, match=f"1 of 2 records were not written: {reason}"):
        writer.finish()
