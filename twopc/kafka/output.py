"""The hot path of the sink: a batch into a producer's queue, topic by topic, with nothing of ours per record.

A producer must know a topic's metadata before its first record to it: librdkafka otherwise may count an unknown
partition into the transaction, and a topic that isn't there would hang instead of failing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, NamedTuple, Protocol

from confluent_kafka import KafkaError, KafkaException

from twopc.column import Failures, last_taken, locate
from twopc.errors import ConfigurationError, TwoPhaseCommitError, UserCodeError
from twopc.kafka.encoding import Refusals, encoded
from twopc.kafka.failures import error_of, failure
from twopc.kafka.identity import Identity
from twopc.kafka.partitioner import Partitioner, partitions_of
from twopc.kafka.refusal import Written
from twopc.kafka.topic_serdes import TopicSerdes
from twopc.kafka.wire import ControlClient
from twopc.record import Batch, Record, RecordError, RecordFault, RecordsRefused, Stage
from twopc.serde import Serde
from twopc.termination import TERMINATION

FULL_QUEUE_POLL_SECONDS = 0.05
REPORT_SECONDS = 5.0

_NO_TIMESTAMP = -1
"""What Kafka stores for none; librdkafka takes 0, and no argument, as now."""

TopicOf = str | Callable[[Record], str]


class DeliveryLog(Protocol):
    """Who keeps in mind what was written."""

    def written(self, written: Written) -> None: ...


class RecordProducer(Protocol):
    """What takes the records of an output; `twopc.kafka.tracked_producer.TrackedProducer` is one."""

    @property
    def topics(self) -> set[str]: ...
    @property
    def client(self) -> Any: ...
    @property
    def deliveries(self) -> DeliveryLog: ...

    def know(self, topic: str) -> None: ...
    def poll(self, seconds: float) -> None: ...
    def raise_reported(self, seconds: float) -> None: ...
    def check_alive(self) -> None: ...


class OutputTopics:
    """The topics that one producer after the other writes to, and their ids as they were when first written to."""

    def __init__(self, client: ControlClient, identity: Identity) -> None:
        self._client = client
        self._identity = identity
        self.ids: dict[str, str] = {}
        self.partitions: dict[str, int] = {}
        """How many a topic has. One that gets more of them is known by the old number until the next attempt."""

    def learn(self, topic: str) -> None:
        """Make sure that a topic exists, and note its id and how many partitions it has."""
        if topic in self.ids:
            return
        found = self._client.topics([topic])
        if topic not in found:
            raise ConfigurationError(
                f"output topic {topic!r} isn't there: create it (twopc topics create {topic}, or kafka-topics.sh) and "
                "start the job again"
            )
        self.ids[topic] = found[topic].topic_id
        self.partitions[topic] = found[topic].partitions
        self._identity.note_output(topic, found[topic].topic_id)


class _Columns(NamedTuple):
    """Records as they go to librdkafka."""

    batch: Batch
    keys: list[Any]
    values: list[Any]
    partitions: Iterable[int]
    timestamps: list[int]
    headers: list[Any]

    def take(self, indices: list[int]) -> _Columns:
        def pick(column: list[Any]) -> list[Any]:
            return [column[index] for index in indices]

        partitions = pick(self.partitions) if isinstance(self.partitions, list) else self.partitions
        return _Columns(
            self.batch.take(indices),
            pick(self.keys),
            pick(self.values),
            partitions,
            pick(self.timestamps),
            pick(self.headers),
        )


class TopicOutput:
    """What one sink writes where: its topic, partitioner and serdes. Close it."""

    def __init__(
        self, topic: TopicOf, partitioner: Partitioner, key: Serde, value: Serde, topics: OutputTopics
    ) -> None:
        self._topic = topic
        self._partitioner = partitioner
        self._key = key
        self._value = value
        self._serdes = TopicSerdes(key, value, [topic] if isinstance(topic, str) else (), writing=True)
        self.topics = topics

    def learn_static(self) -> None:
        """Learn the topic, where it is known before a record is."""
        if isinstance(self._topic, str):
            self.topics.learn(self._topic)

    def write(self, producer: RecordProducer, batch: Batch) -> int:
        """Hand the batch to the producer, waiting where its queue is full; return how many records it took.

        Raises RecordsRefused for those that can't be encoded, or that the client refuses; all others are written.
        """
        if len(batch) == 0:
            return 0
        refused: list[RecordError] = []
        if isinstance(self._topic, str):
            self._write_to(producer, self._topic, batch, refused)
        else:
            for topic, part in _by_topic(self._topic, batch, refused):
                self._write_to(producer, topic, part, refused)
        producer.poll(0)
        if refused:
            raise RecordsRefused(refused, len(batch) - len(refused))
        return len(batch)

    def close(self) -> None:
        """Let go of the serdes."""
        self._serdes.close()

    def _write_to(self, producer: RecordProducer, topic: str, batch: Batch, refused: list[RecordError]) -> None:
        self.topics.learn(topic)
        producer.know(topic)
        columns = self._encoded(topic, batch, refused)
        batch, values, keys = columns.batch, columns.values, columns.keys
        if not len(batch):
            return
        producer.deliveries.written(Written(topic, batch.rows, keys, values, columns.timestamps))
        rest, written = iter(values), len(batch)
        plain = rest, keys, columns.partitions, columns.timestamps
        if any(columns.headers):
            records = zip(*plain, columns.headers, strict=False)
            produce = partial(_produce_with_headers, producer, topic, records)
        else:
            produce = partial(_produce, producer, topic, zip(*plain, strict=False))
        while (cause := self._produced(producer, topic, batch, rest, produce)) is not None:
            row = batch.rows[last_taken(rest)]
            sink = f"KafkaSink(key={self._key}, value={self._value})"
            refused.append(RecordError(row, Stage.KAFKA_PRODUCE, f"producing to topic {topic} with {sink}", cause))
            written -= 1
        if written:
            producer.topics.add(topic)

    def _encoded(self, topic: str, batch: Batch, refused: list[RecordError]) -> _Columns:
        refusals = Refusals()
        count = self.topics.partitions[topic]
        partitions = partitions_of(self._partitioner, batch, topic, count, refusals.errors)
        encode = partial(encoded, encode=refusals.encode, code=refusals.code)
        keys, values, headers = encode(self._serdes.of(topic), batch, f" for topic {topic}")
        stamps, bad_stamps = _timestamps(batch, topic)
        refusals.add(bad_stamps, batch.rows, f"writing a timestamp to topic {topic}")
        columns = _Columns(batch, keys, values, partitions, stamps, headers)
        if refusals.errors:
            refused += refusals.errors.values()
            return columns.take([index for index in range(len(batch)) if index not in refusals.errors])
        return columns

    def _produced(
        self, producer: RecordProducer, topic: str, batch: Batch, rest: Iterator[Any], produce: Callable[[], None]
    ) -> BaseException | None:
        """Go on producing; return why the client alone refuses the record in hand; None when all are produced."""
        try:
            produce()
        except KafkaException as error:
            code = error_of(error).code()
            named = _named(batch, last_taken(rest), failure(f"producing to {topic}", error_of(error)))
            if code == KafkaError.MSG_SIZE_TOO_LARGE:
                return RecordFault(named)
            # A transaction that failed says so itself; the report of the record that spoilt it is on its way.
            producer.raise_reported(REPORT_SECONDS if code == KafkaError._STATE else 0)
            raise named from error
        except (TypeError, ValueError, OverflowError, SystemError) as error:
            return error
        return None


def _produce(producer: RecordProducer, topic: str, records: Iterator[tuple[Any, ...]]) -> None:
    produce = producer.client.produce
    for value, key, partition, stamp in records:
        try:
            produce(topic, value, key, partition, None, None, stamp)
        except BufferError:
            _produce_when_there_is_room(producer, topic, value, key, partition, None, None, stamp)


def _produce_with_headers(producer: RecordProducer, topic: str, records: Iterator[tuple[Any, ...]]) -> None:
    produce = producer.client.produce
    for value, key, partition, stamp, headers in records:
        checked = _checked(headers) if headers else None
        try:
            produce(topic, value, key, partition, None, None, stamp, checked)
        except BufferError:
            _produce_when_there_is_room(producer, topic, value, key, partition, None, None, stamp, checked)


def _checked(headers: Any) -> list[Any]:
    """Refuse a name that would crash confluent-kafka, or be cut short by it."""
    checked = list(headers)
    for header in checked:
        name = header[0] if isinstance(header, tuple) else header
        if isinstance(name, str) and b"\0" in name.encode():
            raise ValueError(f"the name of a header, {name!r}, has a NUL in it")
    return checked


def _produce_when_there_is_room(producer: RecordProducer, *record: Any) -> None:
    """Back-pressure. It ends: room comes, the oldest record runs into message.timeout.ms, or the producer is lost."""
    while True:
        producer.poll(FULL_QUEUE_POLL_SECONDS)
        try:
            producer.client.produce(*record)
        except BufferError:
            producer.check_alive()
            continue
        return


def _timestamps(batch: Batch, topic: str) -> tuple[list[int], Failures]:
    """Return a column of milliseconds. What librdkafka can't write it would replace by the time it is now."""
    stamps = batch.timestamps
    bad: Failures = {}
    if 0 in stamps:
        for index in (index for index, stamp in enumerate(stamps) if stamp == 0):
            error = UserCodeError(
                f"record {locate(batch.rows[index])} has the timestamp 0 (1970-01-01), which the Kafka client can't "
                f"write to topic {topic}: give it another with map_records, as record.replace(timestamp=1), or "
                "timestamp=None for none"
            )
            bad[index] = RecordFault(error)
    return [_NO_TIMESTAMP if stamp is None else stamp for stamp in stamps] if None in stamps else stamps, bad  # type: ignore[return-value]


def _by_topic(topic_of: Callable[[Record], str], batch: Batch, refused: list[RecordError]) -> list[tuple[str, Batch]]:
    """Split the batch by the topic of each record; the order within a topic stays."""
    indices: dict[str, list[int]] = {}
    for index, (row, record) in enumerate(zip(batch.rows, batch.records(), strict=True)):
        try:
            topic = topic_of(record)
            if not isinstance(topic, str):
                raise TypeError(f"it must return the name of a topic, not {topic!r}")
        except TERMINATION:
            raise
        except BaseException as error:  # noqa: BLE001 - it is an error of the record
            refused.append(RecordError(row, Stage.KAFKA_PRODUCE, "the sink's topic function", error))
            continue
        indices.setdefault(topic, []).append(index)
    if len(indices) == 1 and not refused:
        return [(next(iter(indices)), batch)]
    return [(topic, batch.take(chosen)) for topic, chosen in indices.items()]


def _named(batch: Batch, index: int, error: TwoPhaseCommitError) -> TwoPhaseCommitError:
    """Name the input record where the record itself is at fault."""
    if not error.restartable:
        row = batch.rows[index]
        return type(error)(f"record {row.topic()}[{row.partition()}]@{row.offset()}: {error}")
    return error
