"""The hot path of the sink: a batch into a producer's queue, topic by topic, with nothing of ours per record.

A producer must know a topic's metadata before its first record to it: librdkafka otherwise may count an unknown
partition into the transaction, and a topic that isn't there would hang instead of failing.
"""

from __future__ import annotations

import time
from array import array
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, NamedTuple, Protocol

from confluent_kafka import KafkaError, KafkaException

from twopc.column import Failures, named
from twopc.column_rows import NO_TIMESTAMP
from twopc.errors import TwoPhaseCommitError, UserCodeError
from twopc.kafka.clients.delivery_errors import WrittenBatch
from twopc.kafka.clients.failures import error_of, failure
from twopc.kafka.output.encoding import Refusals, encoded, serialized
from twopc.kafka.output.handover import ClientColumns, Handover, QueueingProducer, handover
from twopc.kafka.topic_serdes import TopicSerdes
from twopc.kafka.topics.output_topics import OutputTopics
from twopc.kafka.topics.partitioner import Partitioner, partitions_of
from twopc.kafka.topics.preflight import TopicsMissing
from twopc.kafka.topics.topic_name import TOPIC_NAMES, is_topic_name
from twopc.packed_column import Column, PackedColumn, as_list
from twopc.record import Batch, ErrorStage, Record, RecordError, RecordFault, RecordsRefused
from twopc.serde import Serde
from twopc.termination import TERMINATION

REPORT_SECONDS = 5.0

TopicOf = str | Callable[[Record], str]

CHOOSING = "the sink's topic function"


class DeliveryLog(Protocol):
    """The log of what was written."""

    def written(self, written: WrittenBatch) -> None: ...


class RecordProducer(QueueingProducer, Protocol):
    """The producer of an output's records; `twopc.kafka.output.tracked_producer.TrackedProducer` is one."""

    @property
    def topics(self) -> set[str]: ...
    @property
    def deliveries(self) -> DeliveryLog: ...

    def know(self, topic: str) -> None: ...
    def await_room(self) -> None: ...
    def took(self, records: int, size: int) -> None: ...
    def raise_reported(self, seconds: float) -> None: ...


class _Columns(NamedTuple):
    """Records as they go to librdkafka."""

    batch: Batch
    keys: Column
    values: Column
    partitions: Iterable[int]
    timestamps: Column
    headers: list[Any]

    def to_client(self) -> ClientColumns:
        return ClientColumns(self.keys, self.values, self.partitions, self.timestamps, self.headers)

    def take(self, indices: list[int]) -> _Columns:
        def pick(column: Column) -> list[Any]:
            objects = as_list(column)
            return [objects[index] for index in indices]

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
    """The output of one sink: its topic, partitioner and serdes. Close it."""

    def __init__(
        self, topic: TopicOf, partitioner: Partitioner, key: Serde, value: Serde, topics: OutputTopics
    ) -> None:
        self._topic = topic
        self._partitioner = partitioner
        self._key = key
        self._value = value
        self._serdes = TopicSerdes(key, value, [topic] if isinstance(topic, str) else (), writing=True)
        self.topics = topics
        self.own_topic: str | None = None
        """The topic, if the job itself reads it."""
        self.bytes_written = 0
        """How many bytes the values had that were handed to a producer so far."""

    def learn_static(self) -> None:
        """Learn the topic, where it is known before a record is."""
        if isinstance(self._topic, str):
            self.topics.learn(self._topic)

    @property
    def chooses(self) -> bool:
        """Whether a function chooses the topic of each record."""
        return not isinstance(self._topic, str)

    def write(self, producer: RecordProducer, batch: Batch) -> int:
        """Hand the batch to the producer, waiting while much is undelivered; return how many records it took.

        Raises RecordsRefused for those that can't be encoded, or that the client refuses; all others are written.
        """
        if len(batch) == 0:
            return 0
        producer.await_room()
        refused: list[RecordError] = []
        if isinstance(self._topic, str):
            self._write_to(producer, self._topic, batch, refused)
        else:
            for topic, part in _by_topic(self._topic, batch, refused):
                if self._is_there(topic, part, refused):
                    self._write_to(producer, topic, part, refused)
        producer.poll(0)
        if refused:
            raise RecordsRefused(refused, len(batch) - len(refused))
        return len(batch)

    def close(self) -> None:
        """Let go of the serdes."""
        self._serdes.close()

    def _is_there(self, topic: str, batch: Batch, refused: list[RecordError]) -> bool:
        """Whether a topic that was chosen for these records exists; if not, that is the error of each of them."""
        try:
            self.topics.learn(topic)
        except TopicsMissing as error:
            refused += [RecordError(row, ErrorStage.KAFKA_PRODUCE, CHOOSING, error) for row in batch.rows]
            return False
        return True

    def _write_to(self, producer: RecordProducer, topic: str, batch: Batch, refused: list[RecordError]) -> None:
        self.topics.learn(topic)
        producer.know(topic)
        columns = self._encoded(topic, batch, refused)
        batch, values, keys = columns.batch, columns.values, columns.keys
        if not len(batch):
            return
        self.topics.look_at(topic, columns.timestamps)
        producer.deliveries.written(WrittenBatch(topic, batch.rows, keys, values, columns.timestamps))
        size = _size(values)
        self.bytes_written += size
        producer.took(len(batch), size)
        written = len(batch)
        way = handover(producer, topic, columns.to_client())
        while (cause := self._produced(producer, topic, batch, way)) is not None:
            row = batch.rows[way.index]
            sink = f"KafkaSink(key={self._key}, value={self._value})"
            refused.append(RecordError(row, ErrorStage.KAFKA_PRODUCE, f"producing to topic {topic} with {sink}", cause))
            written -= 1
        if written:
            producer.topics.add(topic)

    def _encoded(self, topic: str, batch: Batch, refused: list[RecordError]) -> _Columns:
        refusals = Refusals()
        count = self.topics.partitions[topic]
        partitions = partitions_of(self._partitioner, batch, topic, count, refusals.errors)
        encode = partial(encoded, encode=partial(serialized, code=refusals.code), code=refusals.code)
        keys, values, headers = encode(self._serdes.of(topic), batch, f" for topic {topic}")
        stamps, bad_stamps = _timestamps(batch, topic)
        refusals.add(bad_stamps, batch.rows, f"writing a timestamp to topic {topic}")
        if (limits := self.topics.limits.get(topic)) is not None:
            beyond = limits.refusals(keys, values, headers, stamps, time.time_ns() // 1_000_000)
            refusals.add(beyond, batch.rows, f"writing to topic {topic}")
        columns = _Columns(batch, keys, values, partitions, stamps, headers)
        if refusals.errors:
            refused += refusals.errors.values()
            return columns.take([index for index in range(len(batch)) if index not in refusals.errors])
        return columns

    def _produced(self, producer: RecordProducer, topic: str, batch: Batch, way: Handover) -> BaseException | None:
        """Go on producing; return why the client alone refuses the record in hand; None when all are produced."""
        try:
            way.proceed()
        except KafkaException as error:
            code = error_of(error).code()
            named = _named(batch, way.index, failure(f"producing to {topic}", error_of(error)))
            if code == KafkaError.MSG_SIZE_TOO_LARGE:
                return RecordFault(named)
            # A transaction that failed says so itself; the report of the record that spoilt it is on its way.
            producer.raise_reported(REPORT_SECONDS if code == KafkaError._STATE else 0)
            raise named from error
        except (TypeError, ValueError, OverflowError, SystemError) as error:
            return error
        return None


def _size(values: Column) -> int:
    """Return how many bytes the values have. What is no bytes is the client's to refuse, or text without a serde."""
    if isinstance(values, PackedColumn):
        return values.size()
    try:
        return sum(map(len, values))
    except TypeError:
        return sum(len(value) for value in values if isinstance(value, bytes | str))


def _timestamps(batch: Batch, topic: str) -> tuple[Column, Failures]:
    """Return a column of milliseconds. What librdkafka can't write it would replace by the time it is now."""
    stamps = batch.timestamp_column
    bad: Failures = {}
    if isinstance(stamps, PackedColumn):
        return stamps, bad
    if not _are_writable([stamp for stamp in stamps if stamp is not None] if None in stamps else stamps):
        stamps = list(stamps)
        for index, stamp in enumerate(stamps):
            if stamp is not None and not _are_writable([stamp]):
                error = UserCodeError(
                    f"{named(batch.rows[index])} has the timestamp {stamp!r}, which the Kafka client can't write to "
                    f"topic {topic}: it takes whole milliseconds from 1 on (0 is now to it, and -1 none). Give it "
                    "another with map_records, as record.replace(timestamp=1), or timestamp=None for none"
                )
                bad[index], stamps[index] = RecordFault(error), None
    return [NO_TIMESTAMP if stamp is None else stamp for stamp in stamps] if None in stamps else stamps, bad


def _are_writable(stamps: list[Any]) -> bool:
    try:
        return min(array("q", stamps), default=1) > 0
    except (TypeError, OverflowError):
        return False


def _by_topic(topic_of: Callable[[Record], str], batch: Batch, refused: list[RecordError]) -> list[tuple[str, Batch]]:
    """Split the batch by the topic of each record; the order within a topic stays."""
    indices: dict[str, list[int]] = {}
    for index, (row, record) in enumerate(zip(batch.rows, batch.records(), strict=True)):
        try:
            topic = topic_of(record)
            if not isinstance(topic, str):
                raise TypeError(f"it must return the name of a topic, not {topic!r}")
            if not is_topic_name(topic):
                raise ValueError(f"it returned {topic!r}: {TOPIC_NAMES}")
        except TERMINATION:
            raise
        except BaseException as error:  # noqa: BLE001 - it is an error of the record
            refused.append(RecordError(row, ErrorStage.KAFKA_PRODUCE, CHOOSING, error))
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
