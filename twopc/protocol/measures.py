"""The measures of a subtask's operators and splits: for people and monitoring, never for a decision."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class OperatorCount:
    """The number of records of this attempt that were so at one operator."""

    operator: str
    records: int


@dataclass(frozen=True, slots=True)
class OperatorBytes:
    """The bytes of the values that one source has read, or one sink written, in this attempt."""

    operator: str
    bytes: int


@dataclass(frozen=True, slots=True)
class SplitLag:
    """The records of a split that are left to read."""

    source: str
    split: str
    records: int


@dataclass(frozen=True, slots=True)
class StreamTimeAt:
    """The stream time of an operator under one partition number, in Unix milliseconds: Flink's watermark."""

    operator: str
    partition: int
    time_ms: int


@dataclass(frozen=True, slots=True)
class Measures:
    """Records read by source, written by sink and late by window; lags, stream times; bytes of values.

    What isn't known is left out.
    `oldest_transaction_ms` is when the oldest transaction began that is open or pre-committed, in Unix milliseconds.
    """

    read: tuple[OperatorCount, ...] = ()
    written: tuple[OperatorCount, ...] = ()
    late: tuple[OperatorCount, ...] = ()
    lags: tuple[SplitLag, ...] = ()
    stream_times: tuple[StreamTimeAt, ...] = ()
    oldest_transaction_ms: int | None = None
    bytes_read: tuple[OperatorBytes, ...] = ()
    bytes_written: tuple[OperatorBytes, ...] = ()
