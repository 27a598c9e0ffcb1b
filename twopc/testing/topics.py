"""Topics for tests and demos: create, delete, fill, and read what a `read_committed` reader sees."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from twopc.errors import Unavailable
from twopc.kafka.ending import await_markers
from twopc.kafka.wire import ControlClient

_TIMEOUT_S = 120.0
_BATCH = 2_000

Headers = tuple[tuple[str, bytes | None], ...]
T = TypeVar("T")


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
    admin = _admin(bootstrap_servers)
    request = NewTopic(topic, num_partitions=partitions, config=dict(settings or {}))
    admin.create_topics([request])[topic].result(_TIMEOUT_S)
    _await(lambda: _leaders(admin, topic) == partitions, f"topic {topic} has no leaders")


def delete_topic(bootstrap_servers: str, topic: str) -> None:
    """Delete a topic, and return when it is no longer listed."""
    admin = _admin(bootstrap_servers)
    admin.delete_topics([topic])[topic].result(_TIMEOUT_S)
    _await(lambda: topic not in admin.list_topics(timeout=_TIMEOUT_S).topics, f"topic {topic} is still listed")


def produce(
    bootstrap_servers: str, topic: str, records: Iterable[Write | bytes], access: Mapping[str, Any] | None = None
) -> int:
    """Produce the records in order, outside any transaction; return how many, once all are acknowledged.

    `access` are the client settings that brokers with TLS or a login want.
    """
    failures: list[str] = []
    producer = Producer(
        {
            **(access or {}),
            "bootstrap.servers": bootstrap_servers,
            "enable.idempotence": True,
            "linger.ms": 5,
            "on_delivery": lambda error, _: failures.append(str(error)) if error else None,
        }
    )
    count = 0
    for record in records:
        _enqueue(producer, topic, record if isinstance(record, Write) else Write(record))
        count += 1
    unsent = producer.flush(_TIMEOUT_S)
    if unsent or failures:
        raise Unavailable(f"{unsent + len(failures)} of {count} records did not reach {topic}: {failures[:1]}")
    return count


def read_topic(
    bootstrap_servers: str, topic: str, *, isolation: str = "read_committed", timeout_s: float = _TIMEOUT_S
) -> list[Read]:
    """All records from the start of the topic to its end as it is now, each partition's in order.

    Under read_committed the end is the last stable offset: what an open transaction hides is not waited for; markers
    of what was committed or aborted before are.
    """
    if isolation == "read_committed":
        with ControlClient(bootstrap_servers, {}) as client:
            await_markers(client, timeout_s)
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap_servers,
            "group.id": "twopc-testing",
            "enable.auto.commit": False,
            "auto.offset.reset": "error",
            "isolation.level": isolation,
            "enable.partition.eof": True,
            "fetch.queue.backoff.ms": 5,
        }
    )
    try:
        return _read_to_end(consumer, topic, timeout_s)
    finally:
        consumer.close()


def _read_to_end(consumer: Consumer, topic: str, timeout_s: float) -> list[Read]:
    known = consumer.list_topics(topic, timeout=timeout_s).topics[topic]
    if known.error is not None:
        raise KafkaException(known.error)
    partitions = known.partitions
    starts = []
    for partition in partitions:
        low, _ = consumer.get_watermark_offsets(TopicPartition(topic, partition), timeout=timeout_s)
        starts.append(TopicPartition(topic, partition, low))
    consumer.assign(starts)
    unfinished = set(partitions)
    read: dict[int, list[Read]] = {partition: [] for partition in partitions}
    deadline = time.monotonic() + timeout_s
    while unfinished:
        if time.monotonic() > deadline:
            raise Unavailable(f"{topic} was not read to its end in {timeout_s} s: partitions {sorted(unfinished)}")
        for message in consumer.consume(_BATCH, timeout=0.1):
            error = message.error()
            if error is None:
                read[_present(message.partition())].append(_record(message))
            elif error.code() == KafkaError._PARTITION_EOF:
                unfinished.discard(_present(message.partition()))
            else:
                raise KafkaException(error)
    return [record for partition in sorted(read) for record in read[partition]]


def _record(message: Message) -> Read:
    _, timestamp = message.timestamp()
    headers = message.headers() or []
    pairs = headers.items() if isinstance(headers, dict) else headers
    return Read(
        topic=_present(message.topic()),
        partition=_present(message.partition()),
        offset=_present(message.offset()),
        key=message.key(),
        value=message.value(),
        timestamp=timestamp,
        headers=tuple((name, value.encode() if isinstance(value, str) else value) for name, value in pairs),
    )


def _enqueue(producer: Producer, topic: str, record: Write) -> None:
    while True:
        try:
            producer.produce(
                topic,
                value=record.value,
                key=record.key,
                partition=-1 if record.partition is None else record.partition,
                timestamp=record.timestamp or 0,
                headers=list(record.headers),
            )
        except BufferError:
            producer.poll(0.05)
        else:
            return


def _admin(bootstrap_servers: str) -> AdminClient:
    return AdminClient({"bootstrap.servers": bootstrap_servers})


def _leaders(admin: AdminClient, topic: str) -> int:
    known = admin.list_topics(topic, timeout=_TIMEOUT_S).topics[topic]
    return sum(1 for partition in known.partitions.values() if partition.leader >= 0 and partition.error is None)


def _await(condition: Callable[[], bool], complaint: str) -> None:
    deadline = time.monotonic() + _TIMEOUT_S
    while not condition():
        if time.monotonic() > deadline:
            raise Unavailable(f"{complaint} after {_TIMEOUT_S:.0f} s")
        time.sleep(0.02)


def _present(value: T | None) -> T:
    assert value is not None
    return value
