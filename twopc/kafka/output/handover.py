"""The handover of a batch's records to a producer's queue: one by one, or by the compiled part, all by one call.

Both wait where the queue is full, and both stop at a record that can't be written with what confluent-kafka raises on
it: what the compiled part does not take, for whatever reason, goes through confluent-kafka.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from twopc.column import last_taken
from twopc.kafka.output.header_pairs import checked_headers
from twopc.packed_column import Buffers, Column, PackedColumn, as_list

if TYPE_CHECKING:
    from twopc.kafka.native._batches import Writer

FULL_QUEUE_POLL_SECONDS = 0.05


class QueueingProducer(Protocol):
    """A producer's queue; `twopc.kafka.output.tracked_producer.TrackedProducer` has one."""

    @property
    def client(self) -> Any: ...

    @property
    def writer(self) -> Writer | None:
        """The writer of whole columns; None for a client that takes records."""

    def poll(self, seconds: float) -> None: ...
    def check_alive(self) -> None: ...


class ClientColumns(NamedTuple):
    """Records as they go to librdkafka; the columns are equally long."""

    keys: Column
    values: Column
    partitions: Iterable[int]
    timestamps: Column
    headers: list[Any]


class Handover(Protocol):
    """One batch on its way. `index` is that of the record in hand."""

    @property
    def index(self) -> int: ...

    def proceed(self) -> None:
        """Go on behind the record in hand, to the end; raise what the client says of one, which is in hand then."""


class RecordHandover:
    """A call for each record."""

    def __init__(self, producer: QueueingProducer, topic: str, columns: ClientColumns) -> None:
        self._producer = producer
        self._topic = topic
        self._rest = iter(as_list(columns.values))
        plain = self._rest, as_list(columns.keys), columns.partitions, as_list(columns.timestamps)
        self._has_headers = any(columns.headers)
        self._records = zip(*plain, columns.headers, strict=False) if self._has_headers else zip(*plain, strict=False)

    @property
    def index(self) -> int:
        return last_taken(self._rest)

    def proceed(self) -> None:
        (_produce_with_headers if self._has_headers else _produce)(self._producer, self._topic, self._records)


class ColumnHandover:
    """A call for all records that the compiled part takes."""

    def __init__(self, producer: QueueingProducer, writer: Writer, topic: str, columns: ClientColumns) -> None:
        self._producer = producer
        self._writer = writer
        self._topic = topic
        self._columns = columns
        self._values, self._keys = _handed(columns.values), _handed(columns.keys)
        self._timestamps = _handed(columns.timestamps)
        self._partitions = columns.partitions if isinstance(columns.partitions, list) else None
        self._headers = columns.headers if any(columns.headers) else None
        self._next = 0
        self.index = 0

    def proceed(self) -> None:
        count = len(self._columns.values)
        while self._next < count:
            columns = self._values, self._keys, self._timestamps, self._partitions, self._headers
            at = self._writer.write(self._topic, *columns, self._next)
            self.index, self._next = at, at + 1
            if at < count:
                _produce_with_headers(self._producer, self._topic, iter([self._record(at)]))

    def _record(self, at: int) -> tuple[Any, ...]:
        # Where the queue is full, one record of many goes this way: the others stay packed.
        keys, values, _, timestamps, headers = self._columns
        partition = -1 if self._partitions is None else self._partitions[at]
        return _element(values, at), _element(keys, at), partition, _element(timestamps, at), headers[at]


def _element(column: Column, at: int) -> Any:
    return column.raw(at) if isinstance(column, PackedColumn) else column[at]


def _handed(column: Column) -> list[Any] | Buffers:
    """Return a column as the compiled part takes it."""
    return column.buffers if isinstance(column, PackedColumn) else column


def handover(producer: QueueingProducer, topic: str, columns: ClientColumns) -> Handover:
    """Return a batch that nothing of is handed over yet."""
    if producer.writer is None:
        return RecordHandover(producer, topic, columns)
    return ColumnHandover(producer, producer.writer, topic, columns)


def _produce(producer: QueueingProducer, topic: str, records: Iterator[tuple[Any, ...]]) -> None:
    produce = producer.client.produce
    for value, key, partition, stamp in records:
        try:
            produce(topic, value, key, partition, None, None, stamp)
        except BufferError:
            _produce_when_there_is_room(producer, topic, value, key, partition, None, None, stamp)


def _produce_with_headers(producer: QueueingProducer, topic: str, records: Iterator[tuple[Any, ...]]) -> None:
    produce = producer.client.produce
    for value, key, partition, stamp, headers in records:
        checked = checked_headers(headers) if headers else None
        try:
            produce(topic, value, key, partition, None, None, stamp, checked)
        except BufferError:
            _produce_when_there_is_room(producer, topic, value, key, partition, None, None, stamp, checked)


def _produce_when_there_is_room(producer: QueueingProducer, *record: Any) -> None:
    """Back-pressure. It ends: room comes, the oldest record runs into message.timeout.ms, or the producer is lost."""
    while True:
        producer.poll(FULL_QUEUE_POLL_SECONDS)
        try:
            producer.client.produce(*record)
        except BufferError:
            producer.check_alive()
            continue
        return
