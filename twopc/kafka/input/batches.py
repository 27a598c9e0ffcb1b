"""Whose records a partition holds, read from the log itself: no client hands over the producer of a record.

Only the headers of the record batches are looked at, so it costs little and no record is decoded. A transaction ends,
in each partition that it wrote to, with a marker: a batch with one control record, which says what became of it.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum

from twopc.errors import Unavailable
from twopc.kafka.topic_partition import Position

_HEADER = struct.Struct(">qiibIhiqqqhii")
_MAGIC = 2
_TRANSACTIONAL, _CONTROL = 0x10, 0x20
_LENGTH_FROM = 12
"""The offset from which on the length in a batch's header counts bytes."""


class Marker(Enum):
    """The meaning of a control record."""

    ABORT = 0
    COMMIT = 1
    OTHER = -1


@dataclass(frozen=True, slots=True)
class LogBatch:
    """One record batch: its first and last offset, and whose it is. A batch with a `marker` holds no records.

    `time_ms` is the greatest timestamp in it: of a marker, when the partition's leader wrote it. `records` is how many
    are in it, markers too: fewer than it has offsets, where compaction has taken some.
    """

    first: int
    last: int
    producer_id: int
    producer_epoch: int
    transactional: bool
    marker: Marker | None
    time_ms: int
    records: int


def log_batches(data: bytes | memoryview) -> Iterator[LogBatch]:
    """Yield the whole batches at the beginning of fetched data; the last is cut off where a fetch ended."""
    data, at = bytes(data), 0
    while len(data) - at >= _HEADER.size:
        first, length, _, magic, _, attributes, last, _, time_ms, producer_id, epoch, _, count = _HEADER.unpack_from(
            data, at
        )
        end = at + _LENGTH_FROM + length
        if end > len(data):
            return
        if magic != _MAGIC:
            raise ValueError(f"a batch has format {magic}; transactions are in format {_MAGIC}")
        marker = _marker(data[at + _HEADER.size : end]) if attributes & _CONTROL else None
        yield LogBatch(
            first, first + last, producer_id, epoch, bool(attributes & _TRANSACTIONAL), marker, time_ms, count
        )
        at = end


def scan(fetch: Callable[[Position], bytes], first: Position, end: Position) -> Iterator[LogBatch]:
    """Yield the batches of a log between two offsets; raise Unavailable if it ends before."""
    at = first
    while at < end:
        before = at
        for batch in log_batches(fetch(at)):
            if at <= batch.last and batch.first < end:
                yield batch
            at = Position(max(at, batch.last + 1))
        if at == before:
            raise Unavailable(f"the log could not be read on from offset {at}, short of its end at {end}")


def _marker(record: bytes) -> Marker:
    """Read the type from a control record's key: length, attributes, two deltas, and the key's length come first."""
    at = 0
    for skipped in ("length", "attributes", "timestamp delta", "offset delta", "key length"):
        at = at + 1 if skipped == "attributes" else _after_varint(record, at)
    (_, kind) = struct.unpack_from(">hh", record, at)
    return Marker(kind) if kind in (0, 1) else Marker.OTHER


def _after_varint(data: bytes, at: int) -> int:
    while data[at] & 0x80:
        at += 1
    return at + 1
