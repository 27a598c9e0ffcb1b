"""What the job makes of a range of its input, worked out in this process: by its own steps, on the restored state.

Nothing of checkpoints, transactions or subtasks takes part, so it can be held against what a run of those wrote.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

from twopc.drill.broker import READER_GROUP, batches
from twopc.job import JobDefinition
from twopc.kafka.client_config import consumer_config
from twopc.kafka.output import serialized
from twopc.kafka.reader import KafkaReader
from twopc.operators import Chain
from twopc.protocol.facts import CheckpointMetadata
from twopc.protocol.ids import Position, SubtaskIndex, TopicPartition
from twopc.record import Batch
from twopc.source import Split
from twopc.state.backend import Family
from twopc.state.keyed import KeyedState
from twopc.state.restore import restore_state
from twopc.state.storage import CheckpointStorage
from twopc.verify.history import Expected, Place


class Reckoner:
    """Holds the state of all subtasks together: that of a checkpoint, or none.

    To be opened before a run prunes what it is restored from.
    """

    def __init__(
        self, definition: JobDefinition, metadata: CheckpointMetadata | None, job_folder: Path, work: Path
    ) -> None:
        self._definition = definition
        snapshots = () if metadata is None else metadata.snapshots
        partitions = [] if metadata is None else [held.partition for held in metadata.positions]
        self._backend = restore_state(CheckpointStorage(job_folder), snapshots, partitions, SubtaskIndex(0), work)

    def __enter__(self) -> Reckoner:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._backend.close()

    def scan(self, family: Family) -> Iterator[tuple[bytes, bytes]]:
        """Yield what the state holds now."""
        return self._backend.scan(family, b"")

    def reckon(
        self, servers: str, starts: Mapping[TopicPartition, Position], ends: Mapping[TopicPartition, Position]
    ) -> Iterator[Expected]:
        """Yield what the input makes from each start up to each end, each input partition in order. Once only."""
        source: Any = self._definition.source
        config = consumer_config(servers, READER_GROUP, source.properties)
        splits = [Split(each, "", starts[each], max(end, starts[each])) for each, end in sorted(ends.items())]
        chain = Chain(self._definition.steps, KeyedState(self._backend))
        for batch in batches(KafkaReader(config, source.key, source.value, splits)):
            yield from self._written(chain.process(batch))
        chain.write_back()

    def _written(self, batch: Batch) -> Iterator[Expected]:
        if not len(batch):
            return
        sink: Any = self._definition.sink
        keys = serialized(sink.key, batch.keys, batch, "encoding a key")
        values = serialized(sink.value, batch.values, batch, "encoding a value")
        for key, value, headers, row in zip(keys, values, batch.headers, batch.rows, strict=True):
            place = Place(TopicPartition(row.topic() or "", row.partition() or 0), row.offset() or 0)
            yield Expected(place, _bytes(key), _bytes(value), tuple(headers or ()))


def _bytes(data: Any) -> bytes | None:
    """As librdkafka takes it: text goes out as UTF-8."""
    return data.encode() if isinstance(data, str) else data
