"""Writes records to topics outside any transaction: loads, copies of an input, what a test needs.

Invariants:

- No record is written twice, and those of a partition keep their order: the producer is idempotent.
- `finish` returns only when every record has arrived.
"""

from __future__ import annotations

from typing import Any

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from twopc.errors import Unavailable
from twopc.kafka.clients.client_config import producer_config
from twopc.kafka.clients.cluster import Cluster

FLUSH_SECONDS = 120.0
ROOM_SECONDS = 0.05


class TopicWriter:
    """One producer. `written` counts the records that it took, `failed` those that didn't arrive."""

    def __init__(self, cluster: Cluster) -> None:
        self.written = 0
        self.failed = 0
        self.first_failure = ""
        config = producer_config(cluster.servers, cluster.properties)
        try:
            self._producer = Producer({**config, "on_delivery": self._on_delivery})
        except KafkaException as error:
            raise Unavailable(f"no producer could be made: {error}") from error

    @property
    def under_way(self) -> int:
        """The number of records without a delivery report yet."""
        return len(self._producer)

    def write(self, topic: str, value: bytes | None, key: bytes | None = None, **fields: Any) -> None:
        """Take a record, as soon as there is room for it; `fields` are partition, timestamp and headers."""
        while True:
            try:
                self._producer.produce(topic, value, key, **fields)
            except BufferError:
                self._producer.poll(ROOM_SECONDS)
            except KafkaException as error:
                raise Unavailable(f"producing to {topic} failed: {error}") from error
            else:
                self.written += 1
                return

    def poll(self, seconds: float = 0.0) -> None:
        """Take the reports that have arrived, and wait for one so long if there is none."""
        self._producer.poll(seconds)

    def flush(self) -> None:
        """Wait for all that is under way; what doesn't arrive in time has failed."""
        # The reports that arrive meanwhile count failures too.
        if left := self._producer.flush(FLUSH_SECONDS):
            self.failed += left
            self.first_failure = self.first_failure or f"no broker has taken them within {FLUSH_SECONDS:g} s"

    def finish(self) -> int:
        """Wait for all records and return how many; raise Unavailable if one didn't arrive."""
        self.flush()
        if self.failed:
            raise Unavailable(f"{self.failed} of {self.written} records were not written: {self.first_failure}")
        return self.written

    def _on_delivery(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self.failed += 1
            self.first_failure = self.first_failure or str(error)
