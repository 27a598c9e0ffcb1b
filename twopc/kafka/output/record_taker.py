"""The far side of an output where no broker is: it takes one record after the other, as a producer would."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, Self

from twopc.kafka.output.header_pairs import checked_headers


class RecordTaker(ABC):
    """A producer to `twopc.kafka.output.topic_output.TopicOutput`, with its client and its log of deliveries."""

    def __init__(self) -> None:
        self.topics: set[str] = set()

    @abstractmethod
    def take(
        self,
        topic: str,
        key: bytes | None,
        value: bytes | None,
        headers: tuple[tuple[str, bytes | None], ...],
        partition: int,
        timestamp: int,
    ) -> None:
        """Take a record as it is written; `partition` and `timestamp` are -1 where the output leaves them open."""

    @property
    def client(self) -> Self:
        return self

    @property
    def writer(self) -> None:
        return None

    @property
    def deliveries(self) -> Self:
        return self

    def produce(
        self,
        topic: str,
        value: Any,
        key: Any,
        partition: int,
        _callback: object,
        _on_delivery: object,
        timestamp: int,
        headers: Sequence[tuple[str, Any]] | None = None,
    ) -> None:
        """As confluent-kafka's: takes bytes, text and None, and raises TypeError for anything else."""
        checked = checked_headers(headers) if headers else ()
        sent = tuple((name, _bytes(f"header {name!r}", each)) for name, each in checked)
        self.take(topic, _bytes("the key", key), _bytes("the value", value), sent, partition, timestamp)

    def know(self, topic: str) -> None:
        """Every topic is known."""

    def written(self, written: Any) -> None:
        """Nothing that was written is refused later."""

    def took(self, records: int, size: int) -> None:
        """All of it has arrived."""

    def await_room(self) -> None:
        """There is room."""

    def poll(self, seconds: float) -> None:
        """There are no reports."""

    def raise_reported(self, seconds: float) -> None:
        """There are no reports."""

    def check_alive(self) -> None:
        """It is."""


def _bytes(what: str, data: Any) -> bytes | None:
    if data is None or isinstance(data, bytes):
        return data
    if isinstance(data, str):
        return data.encode()
    raise TypeError(f"{what} must be bytes, text or None here, not {type(data).__name__}")
