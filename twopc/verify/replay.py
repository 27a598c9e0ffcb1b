"""What a job makes of its input, found out offline: its own operators and serdes, on batches, with state in memory.

What comes out is determined only as far as the job is: its functions must depend on nothing but the record and the
state. It doesn't depend on how the input is cut into batches, nor on which partitions are read first: state is kept by
input partition and key, and the order within a partition is the only one there is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from twopc.column import ColumnError, user_code_error
from twopc.errors import ConfigurationError
from twopc.graph import JobDefinition
from twopc.kafka.sink import KafkaSink
from twopc.kafka.topic_partition import TopicPartition
from twopc.operators import KeyedStateStore
from twopc.operators.chain import Chain
from twopc.record import Batch, Record, Row
from twopc.serde import Serde
from twopc.state.keyed import KeyedState
from twopc.state.memory import MemoryBackend
from twopc.verify.history import Expected, Headers, Place

Encode = Callable[[Serde, list[Any], Batch, str], list[bytes | None]]
"""Encodes a column of a batch; the text says what for."""


def encoded(serde: Serde, column: list[Any], batch: Batch, doing: str) -> list[bytes | None]:
    """Encode strictly: what is not of the serde's type is an error, also where a client would have taken it."""
    try:
        return serde.serialize_all(column)
    except ColumnError as error:
        raise user_code_error(batch.rows[error.index], doing, error.cause) from error.cause


class Replay:
    """Feed it the decoded input, each partition in its order; it says what has to be in the output, and in which topic.

    It starts without state, or with what is in `store`.
    """

    def __init__(
        self, definition: JobDefinition, store: KeyedStateStore | None = None, encode: Encode = encoded
    ) -> None:
        pipeline = definition.pipeline("verified")
        if not isinstance(pipeline.sink, KafkaSink):
            raise ConfigurationError(f"job {definition.name!r} can't be verified: it must write with KafkaSink")
        self._sink = pipeline.sink
        self._encode = encode
        self._chain = Chain(pipeline.steps, KeyedState(MemoryBackend()) if store is None else store)
        self._partitions: dict[tuple[str | None, int | None], TopicPartition] = {}

    def make(self, batch: Batch) -> Iterator[tuple[str, Expected]]:
        """Yield what the job makes of the batch, with the topic that it goes to; raise UserCodeError where it fails."""
        produced = self._chain.process(batch)
        if len(produced) == 0:
            return
        topics = self._topics(produced)
        keys = self._encode(self._sink.key, produced.keys, produced, "encoding a key")
        values = self._encode(self._sink.value, produced.values, produced, "encoding a value")
        columns = zip(topics, produced.rows, keys, values, produced.headers, strict=True)
        for topic, row, key, value, headers in columns:
            yield topic, Expected(self._place(row), key, value, plain_headers(headers))

    def write_back(self) -> None:
        """Bring the store up to what was fed."""
        self._chain.write_back()

    def _place(self, row: Row) -> Place:
        pair = (row.topic(), row.partition())
        partition = self._partitions.get(pair)
        if partition is None:
            partition = self._partitions[pair] = TopicPartition(pair[0] or "", pair[1] or 0)
        return Place(partition, row.offset() or 0)

    def _topics(self, batch: Batch) -> list[str]:
        topic = self._sink.topic
        if isinstance(topic, str):
            return [topic] * len(batch)
        topics = []
        columns = zip(batch.rows, batch.keys, batch.values, batch.timestamps, batch.headers, strict=True)
        for row, key, value, stamp, headers in columns:
            partition, offset = self._place(row)
            try:
                topics.append(topic(Record(key, value, stamp, headers, partition.topic, partition.partition, offset)))
            except Exception as error:
                raise user_code_error(row, "the sink's topic function", error) from error
        return topics


def plain_headers(headers: Any) -> Headers:
    """Return headers as the client hands them over, in the one form in which they are compared."""
    if not headers:
        return ()
    pairs = headers.items() if isinstance(headers, dict) else headers
    return tuple((name, value.encode() if isinstance(value, str) else value) for name, value in pairs)
