"""The source `twopc-kafka` as Spark drives it: a process of Spark's asks where batches end, tasks read them."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from pyarrow import RecordBatch
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    ReadMinRows,
    SupportsTriggerAvailableNow,
)

from twopc.kafka.positions.partition_position import PartitionPosition
from twopc.kafka.topic_partition import Position
from twopc.spark.streaming.source_offsets import SourceOffsets
from twopc.spark.streaming.source_options import SourceOptions
from twopc.spark.streaming.source_planner import SourcePlanner
from twopc.spark.streaming.source_shares import shares
from twopc.spark.streaming.source_task import arrow_batches

Json = dict[str, Any]


class KafkaStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Spark pickles one for the tasks, which connect by themselves; of another it asks all else, and stops it."""

    def __init__(self, options: SourceOptions) -> None:
        self._options = options
        self._opened: SourcePlanner | None = None
        self._goal: SourceOffsets | None = None
        self._seen: SourceOffsets | None = None
        self._moved_at = time.monotonic()

    def initialOffset(self) -> Json:  # noqa: N802  Spark's name
        """Nothing is known: Spark asks again after a crash, and must not be told another number then."""
        return SourceOffsets().to_json()

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802  Spark's name
        if self._options.most is not None:
            return ReadMaxRows(self._options.most)
        return ReadAllAvailable() if self._options.least is None else ReadMinRows(self._options.least)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802  Spark's name
        self._goal = self._planner.ends()

    def latestOffset(self, start: Json, limit: ReadLimit) -> Json:  # noqa: N802  Spark's name
        """Return where the next batch ends, `start` where there is nothing to read or too little yet."""
        begun = SourceOffsets.from_json(start)
        standing = self._planner.standing(begun)
        self._seen = self._planner.ends() if self._goal is None else self._goal
        behind = self._behind(begun, standing)
        if not isinstance(limit, ReadAllAvailable):
            if standing == begun and self._waits(sum(behind.values())):
                return start
            behind = behind if self._options.most is None else shares(behind, self._options.most)
        self._moved_at = time.monotonic()
        moved = (
            replace(position, position=Position(position.position + behind[position]))
            for position in standing.positions
        )
        return SourceOffsets.of(moved).to_json()

    def reportLatestOffset(self) -> Json | None:  # noqa: N802  Spark's name
        """Return the ends as they were seen last: what is left of them is the lag in the query's progress."""
        return None if self._seen is None else self._seen.to_json()

    def partitions(self, start: Json, end: Json) -> Sequence[InputPartition]:
        ranges = self._planner.ranges(SourceOffsets.from_json(start), SourceOffsets.from_json(end))
        return [InputPartition(split) for split in ranges]

    def read(self, partition: InputPartition) -> Iterator[RecordBatch]:
        return arrow_batches(self._options, partition.value)

    def stop(self) -> None:
        opened, self._opened = self._opened, None
        if opened is not None:
            opened.close()

    @property
    def _planner(self) -> SourcePlanner:
        if self._opened is None:
            self._opened = SourcePlanner.connected(self._options)
        return self._opened

    def _behind(self, begun: SourceOffsets, standing: SourceOffsets) -> dict[PartitionPosition, int]:
        """Return how many offsets are left of each partition; none of one that the query only begins with now."""
        assert self._seen is not None
        known, ends = begun.by_partition(), self._seen.by_partition()
        behind = dict.fromkeys(standing.positions, 0)
        for position in standing.positions:
            end = ends.get(position.partition)
            if position.partition in known and end is not None and end.topic_id == position.topic_id:
                behind[position] = max(0, end.position - position.position)
        return behind

    def _waits(self, left: int) -> bool:
        """Whether there is too little for a batch. A query that is to end by itself doesn't wait for more."""
        least = self._options.least
        if least is None or self._goal is not None or left >= least:
            return False
        return (time.monotonic() - self._moved_at) * 1000 < self._options.longest_wait_ms
