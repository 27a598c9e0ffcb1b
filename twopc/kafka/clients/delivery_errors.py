"""Delivery errors: brokers refuse whole requests, and the input record that is at fault is found here.

All records of a refused request come back with one error. Which of them is at fault shows in the records themselves;
where it came from is known of what was written lately.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from confluent_kafka import KafkaError

from twopc.column import named
from twopc.errors import TwoPhaseCommitError
from twopc.kafka.clients.failures import PURGED, failure
from twopc.packed_column import PackedColumn
from twopc.record import Row

RECENT_RECORDS = 2_000
"""How many records are kept for that. Of four times as many each cost the data loop a tenth more: the memory that a
batch leaves is used for the next while it is still in the processor's cache."""

FEW_QUEUED = 1_000

UNDELIVERED_MAX = 20_000
"""How many reports of a failure are kept: more than a request has records."""


@dataclass(frozen=True, slots=True)
class UndeliveredRecord:
    """One record as its delivery report has it."""

    error: KafkaError
    topic: str
    partition: int
    key: bytes | None
    value: bytes | None


@dataclass(frozen=True, slots=True)
class WrittenBatch:
    """One batch as it went to a topic; the columns are equally long, and may be packed."""

    topic: str
    rows: Sequence[Row]
    keys: Sequence[Any] | PackedColumn
    values: Sequence[Any] | PackedColumn
    timestamps: Sequence[int] | PackedColumn


@dataclass(frozen=True, slots=True)
class _Suspect:
    row: Row | None
    key: bytes | None
    size: int
    timestamp: int


class Deliveries:
    """The records that were written lately, and all that could not be delivered."""

    def __init__(self) -> None:
        self._recent: deque[WrittenBatch] = deque()
        self._recent_records = 0
        self._undelivered: list[UndeliveredRecord] = []

    def written(self, batch: WrittenBatch) -> None:
        self._recent.append(batch)
        self._recent_records += len(batch.rows)
        while self._recent_records - len(self._recent[0].rows) >= RECENT_RECORDS:
            self._recent_records -= len(self._recent.popleft().rows)

    def failed(self, record: UndeliveredRecord) -> None:
        if len(self._undelivered) < UNDELIVERED_MAX:
            self._undelivered.append(record)

    def clear(self) -> None:
        self._recent.clear()
        self._recent_records = 0
        self._undelivered.clear()

    @property
    def only_purged(self) -> bool:
        """Whether all fell with something else, which no report names."""
        return bool(self._undelivered) and all(item.error.code() in PURGED for item in self._undelivered)

    def failure(self) -> TwoPhaseCommitError | None:
        """Return what kept the first record from being delivered, and which record that was, as far as can be known."""
        if not self._undelivered:
            return None
        # What is purged fell with another record.
        cause = next((item for item in self._undelivered if item.error.code() not in PURGED), self._undelivered[0])
        return refusal(
            [item for item in self._undelivered if item.error == cause.error and item.topic == cause.topic],
            list(self._recent),
            time.time() * 1000,
        )


def refusal(
    undelivered: Sequence[UndeliveredRecord], recent: Sequence[WrittenBatch], now_ms: float
) -> TwoPhaseCommitError:
    """Return the error for records of one topic that came back with one error."""
    first = undelivered[0]
    doing, weight = f"delivering a record to {first.topic}[{first.partition}]", _WEIGHTS.get(first.error.code())
    if weight is None:
        return failure(doing, first.error)
    suspect = max(_suspects(undelivered, recent), key=lambda suspect: weight(suspect, now_ms))
    error = failure(doing, first.error)
    size = f"({suspect.size} bytes with its key, once encoded)"
    if suspect.row is not None:
        return type(error)(f"{named(suspect.row)} {size}: {error}")
    return type(error)(
        f"a record that had waited long in the producer's queue {size}: {error}. To have it named, start once with "
        f"KafkaSink(properties={{'queue.buffering.max.messages': {FEW_QUEUED}}})"
    )


def _suspects(undelivered: Sequence[UndeliveredRecord], recent: Sequence[WrittenBatch]) -> list[_Suspect]:
    returned = {(item.key, item.value) for item in undelivered}
    located = [
        _Suspect(row, key, len(key or b"") + len(value or b""), timestamp)
        for row, key, value, timestamp in _rows(undelivered[0].topic, recent)
        if (key, value) in returned
    ]
    return located or [
        _Suspect(None, item.key, len(item.key or b"") + len(item.value or b""), 0) for item in undelivered
    ]


def _rows(topic: str, recent: Sequence[WrittenBatch]) -> Iterator[tuple[Row, bytes | None, bytes | None, int]]:
    for batch in recent:
        if batch.topic == topic:
            for row, key, value, timestamp in zip(batch.rows, batch.keys, batch.values, batch.timestamps, strict=True):
                yield row, _encoded(key), _encoded(value), timestamp


def _encoded(data: Any) -> bytes | None:
    return data.encode() if isinstance(data, str) else data


_WEIGHTS: dict[int, Callable[[_Suspect, float], float]] = {
    KafkaError.MSG_SIZE_TOO_LARGE: lambda suspect, _: suspect.size,
    KafkaError.RECORD_LIST_TOO_LARGE: lambda suspect, _: suspect.size,
    KafkaError.INVALID_RECORD: lambda suspect, _: suspect.key is None,
    KafkaError.INVALID_TIMESTAMP: lambda suspect, now_ms: abs(now_ms - suspect.timestamp),
}
