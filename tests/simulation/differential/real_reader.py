"""Reads one partition of a real broker, from its end as it was at first to its end as it is, with either isolation."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from kafka.protocol.consumer import FetchRequest
from kafka.record import MemoryRecords

from tests.simulation.differential.connection import Connection
from tests.simulation.differential.observed import VisiblePartition

UNCOMMITTED, COMMITTED = 0, 1
_PATIENCE_S = 60.0


@dataclass(frozen=True, slots=True)
class FetchedRecords:
    """The records of one reader. An aborted transaction is named by its producer id and its first offset."""

    high_watermark: int
    last_stable_offset: int
    batches: list[Any]
    aborted: frozenset[tuple[int, int]]


class RealReader:
    def __init__(self, connection: Connection, topic: str, partition: int) -> None:
        self._connection = connection
        self._topic = topic
        self._partition = partition
        self._start = int(self._fetch(0, UNCOMMITTED).high_watermark)

    def seen(self) -> VisiblePartition:
        committed, every = self._read(COMMITTED), self._read(UNCOMMITTED)
        return VisiblePartition(
            every.high_watermark - self._start,
            every.last_stable_offset - self._start,
            tuple(_values(committed.batches, committed.aborted)),
            tuple(_values(every.batches, frozenset())),
        )

    def _read(self, isolation: int) -> FetchedRecords:
        """Fetch until the end is reached: one answer may hold less than there is."""
        offset = self._start
        batches: list[Any] = []
        aborted: set[tuple[int, int]] = set()
        while True:
            found = self._fetch(offset, isolation)
            new = list(MemoryRecords(bytes(found.records or b"")))
            batches += new
            aborted |= {(each.producer_id, each.first_offset) for each in found.aborted_transactions or ()}
            offset = new[-1].next_offset if new else offset
            if offset >= (found.last_stable_offset if isolation == COMMITTED else found.high_watermark):
                return FetchedRecords(found.high_watermark, found.last_stable_offset, batches, frozenset(aborted))

    def _fetch(self, offset: int, isolation: int) -> Any:
        topics = FetchRequest.FetchTopic
        wanted = topics.FetchPartition(partition=self._partition, fetch_offset=offset, partition_max_bytes=1_000_000)
        request = FetchRequest(
            max_wait_ms=0,
            min_bytes=0,
            max_bytes=10_000_000,
            isolation_level=isolation,
            topics=[topics(topic=self._topic, partitions=[wanted])],
        )
        deadline = time.monotonic() + _PATIENCE_S
        while True:
            found = self._connection.ask(request, 11).responses[0].partitions[0]
            if found.error_code == 0:
                return found
            # A topic that was made a moment ago may not have its leader yet.
            assert time.monotonic() < deadline, f"Fetch answered {found.error_code}"
            time.sleep(0.01)


def _values(batches: Iterable[Any], aborted: frozenset[tuple[int, int]]) -> list[str]:
    """The values of a log, without those of aborted transactions."""
    found: list[str] = []
    hidden: set[int] = set()
    for batch in batches:
        if batch.is_control_batch:
            hidden.discard(batch.producer_id)
            continue
        begun = {each for each in aborted if each[0] == batch.producer_id and each[1] <= batch.base_offset}
        hidden |= {producer_id for producer_id, _ in begun}
        aborted -= begun
        if batch.producer_id not in hidden:
            found += [record.value.decode() for record in batch]
    return found
