"""The fetching of records from a consumer: as confluent-kafka's messages, or as columns by the compiled part.

Both wait alike: some milliseconds for a batch to become full, and longer where nothing came.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from confluent_kafka import Consumer, KafkaError, Message

from twopc.errors import Unavailable
from twopc.kafka import native
from twopc.kafka.input.decoding import decoded
from twopc.kafka.input.read_rows import ReadRows
from twopc.kafka.topic_partition import TopicPartition
from twopc.kafka.topic_serdes import TopicSerdes
from twopc.record import Batch

if TYPE_CHECKING:
    from twopc.kafka.native._batches import Reader

FILL_SECONDS = 0.005
"""How long a batch may wait to become full once there is a record."""

OTHERS_MOST = 100
"""How much of what is no record of a partition is taken from the consumer at once."""


class ReadError(NamedTuple):
    """An error that a consumer gave in place of a record."""

    partition: TopicPartition
    offset: int
    error: KafkaError


class Fetched(NamedTuple):
    """The records that came, in their order, and the errors between them."""

    rows: Sequence[Any]
    errors: Sequence[ReadError]


class Fetching(Protocol):
    """Takes records from one consumer. Close it before the consumer."""

    @property
    def settings(self) -> dict[str, Any]:
        """The settings that the consumer must have."""

    def start(self, consumer: Consumer, partitions: Sequence[TopicPartition]) -> None:
        """Say which partitions the consumer is about to be assigned."""

    def take(self, most: int, seconds: float) -> Fetched:
        """Return up to `most` records; none where none came for so long."""

    def size(self, rows: Sequence[Any]) -> int:
        """Return how many bytes the values have."""

    def decoded(self, rows: Sequence[Any], serdes: TopicSerdes) -> Batch: ...

    def close(self) -> None: ...


class MessageFetching:
    """One object of confluent-kafka's for each record."""

    def __init__(self) -> None:
        self._consumer: Consumer | None = None
        self.settings: dict[str, Any] = {}

    def start(self, consumer: Consumer, partitions: Sequence[TopicPartition]) -> None:
        self._consumer = consumer

    def take(self, most: int, seconds: float) -> Fetched:
        assert self._consumer is not None, "not started"
        messages = self._consumer.consume(most, min(seconds, FILL_SECONDS))
        if not messages and seconds > FILL_SECONDS:
            messages = self._consumer.consume(1, seconds - FILL_SECONDS)
            messages += self._consumer.consume(most - 1, 0) if messages and most > 1 else []
        return _sorted(messages)

    def size(self, rows: Sequence[Message]) -> int:
        return sum(map(len, rows))

    def decoded(self, rows: Sequence[Message], serdes: TopicSerdes) -> Batch:
        return decoded(rows, serdes, _message_keys, _message_values)

    def close(self) -> None:
        self._consumer = None


class ColumnFetching:
    """By the compiled part: a batch of columns by one call.

    The records of the partitions go past the consumer's own queue. What comes there is what confluent-kafka calls back
    about, and errors that are no partition's: it is asked for those whenever records are taken.
    """

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._consumer: Consumer | None = None
        self.settings = native.settings_for(reader.number)

    def start(self, consumer: Consumer, partitions: Sequence[TopicPartition]) -> None:
        self._consumer = consumer
        self._reader.follow(consumer, [(partition.topic, partition.partition) for partition in partitions])

    def take(self, most: int, seconds: float) -> Fetched:
        assert self._consumer is not None, "not started"
        fill = min(seconds, FILL_SECONDS)
        records = self._reader.read(most, _milliseconds(fill), _milliseconds(seconds - fill))
        others = _sorted(self._consumer.consume(OTHERS_MOST, 0))
        if others.rows:
            raise Unavailable("a record came past the compiled part: starting again with new clients")
        errors = [
            ReadError(TopicPartition(topic, partition), offset, KafkaError(code, text))
            for code, text, topic, partition, offset in records.errors
        ]
        return Fetched(ReadRows(records), [*errors, *others.errors])

    def size(self, rows: Any) -> int:
        return ReadRows.size(rows)

    def decoded(self, rows: Sequence[Any], serdes: TopicSerdes) -> Batch:
        return decoded(rows, serdes, ReadRows.keys, ReadRows.values)

    def close(self) -> None:
        self._reader.close()
        self._consumer = None


def fetching() -> Fetching:
    """Return the way that is in use in this process."""
    module = native.batches()
    return MessageFetching() if module is None else ColumnFetching(module.Reader())


def _sorted(messages: list[Message]) -> Fetched:
    """Part the records from what is none."""
    if not any(map(Message.error, messages)):
        return Fetched(messages, ())
    records: list[Message] = []
    errors: list[ReadError] = []
    for message in messages:
        error = message.error()
        if error is None:
            records.append(message)
        else:
            partition = TopicPartition(str(message.topic()), int(message.partition() or 0))
            errors.append(ReadError(partition, int(message.offset() or 0), error))
    return Fetched(records, errors)


def _message_keys(rows: Sequence[Message]) -> list[Any]:
    return list(map(Message.key, rows))


def _message_values(rows: Sequence[Message]) -> list[Any]:
    return list(map(Message.value, rows))


def _milliseconds(seconds: float) -> int:
    return max(0, round(seconds * 1000))
