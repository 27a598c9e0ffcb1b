"""Record batches as brokers store them: whose they are, and what markers say."""

from __future__ import annotations

import struct

import pytest
from kafka.record.default_records import DefaultRecordBatchBuilder

from twopc.kafka.input.batches import LogBatch, Marker, log_batches


def written(first: int, count: int, *, producer: int = 7, epoch: int = 3, transactional: bool = True) -> bytes:
    """As a client writes records; the broker gives the offset."""
    builder = DefaultRecordBatchBuilder(2, 0, transactional, producer, epoch, 0, 1_000_000)
    for number in range(count):
        builder.append(number, 1_000, b"k", b"value", [])
    data = bytearray(builder.build())
    struct.pack_into(">q", data, 0, first)
    return bytes(data)


def marker(offset: int, kind: int, *, producer: int = 7, epoch: int = 3, time_ms: int = 50) -> bytes:
    """As a broker writes the end of a transaction: key (version, type), value (version, coordinator epoch)."""
    key, value = struct.pack(">hh", 0, kind), struct.pack(">hi", 0, 0)
    body = b"\x00\x00\x00" + bytes([2 * len(key)]) + key + bytes([2 * len(value)]) + value + b"\x00"
    record = bytes([2 * len(body)]) + body
    header = struct.pack(">iBIhiqqqhii", 0, 2, 0, 0x30, 0, time_ms, time_ms, producer, epoch, -1, 1)
    return struct.pack(">qi", offset, len(header) + len(record)) + header + record


def test_a_batch_says_its_offsets_and_its_producer() -> None:
    assert list(log_batches(written(40, 3) + written(43, 1, transactional=False, producer=-1, epoch=-1))) == [
        LogBatch(40, 42, 7, 3, transactional=True, marker=None, time_ms=1_000, records=3),
        LogBatch(43, 43, -1, -1, transactional=False, marker=None, time_ms=1_000, records=1),
    ]


@pytest.mark.parametrize(("kind", "said"), [(0, Marker.ABORT), (1, Marker.COMMIT), (5, Marker.OTHER)])
def test_a_marker_says_what_became_of_the_transaction(kind: int, said: Marker) -> None:
    assert list(log_batches(marker(9, kind))) == [
        LogBatch(9, 9, 7, 3, transactional=True, marker=said, time_ms=50, records=1)
    ]


def test_a_batch_that_was_cut_off_is_left_for_the_next_fetch() -> None:
    whole = written(0, 2) + written(2, 2)
    for size in range(len(whole)):
        found = list(log_batches(whole[:size]))
        assert len(found) == (1 if size >= len(written(0, 2)) else 0)


def test_a_format_without_transactions_is_refused() -> None:
    data = bytearray(written(0, 1))
    data[16] = 1
    with pytest.raises(ValueError, match="format 1"):
        list(log_batches(bytes(data)))
