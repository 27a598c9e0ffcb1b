"""Reads a topic while it grows, as a `read_committed` consumer, through whatever happens to its broker."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from twopc.testing.topics import Read

_BATCH = 2_000
_POLL_S = 0.1


@dataclass(frozen=True, slots=True)
class CaughtUp:
    """Everything that could be seen of this partition when it was looked at has been read."""

    partition: int


def follow(bootstrap_servers: str, topic: str, partitions: int) -> Generator[Read | CaughtUp | None]:
    """Yield every committed record from the start on, and for ever; None where nothing came for a moment.

    Errors of the connection are waited out. Close the iterator to end it.
    """
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap_servers,
            "group.id": "twopc-testing-follow",
            "enable.auto.commit": False,
            "auto.offset.reset": "error",
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
            "fetch.queue.backoff.ms": 5,
            "reconnect.backoff.max.ms": 500,
            "log_level": 0,
        }
    )
    try:
        consumer.assign([TopicPartition(topic, partition, 0) for partition in range(partitions)])
        while True:
            messages = consumer.consume(_BATCH, timeout=_POLL_S)
            if not messages:
                yield None
            for message in messages:
                seen = _seen(message)
                if seen is not None:
                    yield seen
    finally:
        consumer.close()


def _seen(message: Message) -> Read | CaughtUp | None:
    error = message.error()
    topic, partition, offset = message.topic(), message.partition(), message.offset()
    if error is None:
        assert topic is not None
        assert partition is not None
        assert offset is not None
        return Read(topic, partition, offset, message.key(), message.value(), message.timestamp()[1])
    if error.code() == KafkaError._PARTITION_EOF:
        assert partition is not None
        return CaughtUp(partition)
    if error.fatal() or error.code() in (KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE):
        raise KafkaException(error)
    return None
