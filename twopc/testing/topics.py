"""Topics for tests and demos: create, delete, fill, and read what a `read_committed` reader sees."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from twopc.kafka.clients.cluster import Cluster
from twopc.kafka.input.topic_reader import read, whole
from twopc.kafka.output.topic_writer import TopicWriter

_TIMEOUT_S = 120.0

Headers = tuple[tuple[str, bytes | None], ...]


@dataclass(frozen=True, slots=True)
class Read:
    """One record as a reader saw it."""

    topic: str
    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    timestamp: int
    headers: Headers = ()


@dataclass(frozen=True, slots=True)
class Write:
    """One record to produce; no partition leaves the choice to its key."""

    value: bytes | None
    key: bytes | None = None
    partition: int | None = None
    timestamp: int | None = None
    headers: Headers = ()


def create_topic(
    bootstrap_servers: str, topic: str, partitions: int = 1, *, settings: Mapping[str, str] | None = None
) -> None:
    """Create a topic, and return when every partition has a leader."""
    with Cluster(bootstrap_servers).client() as client:
        client.create_topic(topic, partitions, settings=settings)


def delete_topic(bootstrap_servers: str, topic: str) -> None:
    """Delete a topic, and return when it is no longer listed."""
    with Cluster(bootstrap_servers).client() as client:
        client.delete_topic(topic)


def produce(
    bootstrap_servers: str, topic: str, records: Iterable[Write | bytes], access: Mapping[str, Any] | None = None
) -> int:
    """Produce the records in order, outside any transaction; return how many, once all are acknowledged.

    `access` are the client settings that brokers with TLS or a login want.
    """
    writer = TopicWriter(Cluster(bootstrap_servers, access or {}))
    for record in records:
        if isinstance(record, Write):
            _write(writer, topic, record)
        else:
            writer.write(topic, record)
    return writer.finish()


def read_topic(
    bootstrap_servers: str, topic: str, *, isolation: str = "read_committed", timeout_s: float = _TIMEOUT_S
) -> list[Read]:
    """All records from the start of the topic to its end as it is now, each partition's in order."""
    cluster, committed = Cluster(bootstrap_servers), isolation == "read_committed"
    ranges = whole(cluster, [topic], committed=committed)
    batches = read(cluster, ranges, committed=committed, stall_seconds=timeout_s)
    records = [_record(message) for batch in batches for message in batch.rows]
    return sorted(records, key=lambda record: (record.partition, record.offset))


def _record(message: Any) -> Read:
    return Read(
        topic=message.topic(),
        partition=message.partition(),
        offset=message.offset(),
        key=message.key(),
        value=message.value(),
        timestamp=message.timestamp()[1],
        headers=tuple(message.headers() or ()),
    )


def _write(writer: TopicWriter, topic: str, record: Write) -> None:
    writer.write(
        topic,
        record.value,
        record.key,
        partition=-1 if record.partition is None else record.partition,
        timestamp=record.timestamp or 0,
        headers=list(record.headers),
    )
