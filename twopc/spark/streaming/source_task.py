"""The part of a batch that one task of Spark's reads: a range of one partition, as Arrow batches.

When the range is read, those who lead the partition are asked whether the topic is still the one that the batch was
planned with: a task that has read of another fails, and so does its batch.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from operator import methodcaller
from typing import Any

import pyarrow as pa

from twopc.errors import CheckpointDeclined, ConfigurationError, Unavailable
from twopc.kafka.clients.access import access_of
from twopc.kafka.clients.leaders import LeaderClient
from twopc.kafka.input.topic_reader import read
from twopc.kafka.positions.partition_position import PartitionSplit
from twopc.kafka.topics.topic_identity import TopicIdentity
from twopc.protocol.ids import NO_CHECKPOINT
from twopc.record import Batch
from twopc.spark.streaming.source_options import SourceOptions

_HEADER = pa.struct([("key", pa.string()), ("value", pa.binary())])
_FIELDS = [
    ("key", pa.binary()),
    ("value", pa.binary()),
    ("topic", pa.string()),
    ("partition", pa.int32()),
    ("offset", pa.int64()),
    ("timestamp", pa.timestamp("us", tz="UTC")),
    ("timestampType", pa.int32()),
]
_HEADERS = ("headers", pa.list_(_HEADER))

_clients: dict[str, LeaderClient] = {}
"""The connections of this process, which serves one task after the other."""


def arrow_batches(options: SourceOptions, split: PartitionSplit) -> Iterator[pa.RecordBatch]:
    """Yield the records of a range in order; raise ConfigurationError where they are no longer those of the plan."""
    assert split.stop is not None
    schema = schema_of(options)
    for batch in read(options.cluster, {split.partition: (split.start, split.stop)}):
        yield pa.RecordBatch.from_pydict(_columns(batch, split, options), schema)
    _check_topic(options, split)


def schema_of(options: SourceOptions) -> pa.Schema:
    """Return the columns as Spark wants them to come."""
    return pa.schema([*_FIELDS, _HEADERS] if options.headers else _FIELDS)


def _columns(batch: Batch, split: PartitionSplit, options: SourceOptions) -> Mapping[str, Any]:
    rows, count = batch.rows, len(batch)
    kinds = [kind for kind, _ in map(methodcaller("timestamp"), rows)]
    return {
        "key": batch.keys,
        "value": batch.values,
        "topic": pa.repeat(split.partition.topic, count),
        "partition": pa.repeat(pa.scalar(split.partition.partition, pa.int32()), count),
        "offset": list(map(methodcaller("offset"), rows)),
        "timestamp": _microseconds(batch.timestamps),
        # Spark counts from -1, for none; librdkafka from 0.
        "timestampType": [kind - 1 for kind in kinds],
        **({"headers": _headers(batch)} if options.headers else {}),
    }


def _microseconds(milliseconds: list[int | None]) -> pa.Array:
    in_ms = pa.array(milliseconds, pa.timestamp("ms", tz="UTC"))
    return in_ms.cast(pa.timestamp("us", tz="UTC"))


def _headers(batch: Batch) -> list[list[dict[str, Any]] | None]:
    return [
        None if header is None else [{"key": key, "value": value} for key, value in header] for header in batch.headers
    ]


def _check_topic(options: SourceOptions, split: PartitionSplit) -> None:
    key = repr((options.servers, sorted(access_of(options.properties).items())))
    if key not in _clients:
        _clients[key] = LeaderClient(options.servers, options.properties)
    identity = TopicIdentity(_clients[key])
    identity.note_input(split.partition.topic, split.topic_id, [split.partition.partition])
    try:
        identity.check(NO_CHECKPOINT)
    except ConfigurationError as error:
        raise ConfigurationError(
            f"topic {split.partition.topic!r} was deleted while a batch of it was read, or deleted and created again: "
            "nothing of that batch counts. Start the query again, and it says what is left of its positions"
        ) from error
    except CheckpointDeclined as error:
        raise Unavailable(str(error)) from error
