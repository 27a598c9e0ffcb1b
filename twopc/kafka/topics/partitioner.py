"""Chooses the partition of its topic that a record is written to.

The producer's own choice is that of Java's clients, `murmur2_random` in librdkafka's settings: the murmur2 of the key,
and any partition for a record without one. Others are made here, before the producer gets the record: the number of
the partition that a record was read from, what a function says, and for a mark of time the partition that it is for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from itertools import repeat
from typing import Any

from twopc.column import named
from twopc.column_rows import partitions_of as partitions_of_rows
from twopc.errors import ConfigurationError
from twopc.kafka.clients.kafka_python import murmur2
from twopc.record import Batch, ErrorStage, Record, RecordError, RecordFault
from twopc.stand_ins import PassedTime
from twopc.termination import TERMINATION

MURMUR2, SOURCE = "murmur2", "source"

AS_WRITTEN_ELSEWHERE = "as written elsewhere"
"""Of the topics of a job's own: a key of bytes, which stands in another form there, goes where it would anywhere."""

KEYS_KEPT = 1 << 16

BY_PRODUCER = -1
"""The partition's number that leaves the choice to the producer."""

_CHOOSING = "the sink's partitioner"

Partitioner = str | Callable[[Record, int], int] | None


def partition_for(key: bytes, partitions: int) -> int:
    """Return the number of the partition, of so many, that records of this key are written to by murmur2."""
    return _hash(key) % partitions


@lru_cache(KEYS_KEPT)
def _hash(key: bytes) -> int:
    return int(murmur2(key) & 0x7FFFFFFF)


def checked_partitioner(given: Partitioner, properties: Mapping[str, Any]) -> Partitioner:
    """Return what a sink was given; raise ConfigurationError if it is none, or says what its properties say too."""
    if given is not None and given not in (MURMUR2, SOURCE) and not callable(given):
        raise ConfigurationError(
            f"partitioner of KafkaSink must be {MURMUR2!r}, {SOURCE!r} or a function of a record and the number of "
            f"partitions, not {given!r}"
        )
    if given is not None and "partitioner" in properties:
        raise ConfigurationError("KafkaSink has a partitioner=..., so its properties can't name another 'partitioner'")
    return given


def too_few(topic: str, partitions: int, needed: int) -> str:
    """Say that a topic has too few partitions for those of the input."""
    return (
        f"output topic {topic!r} has {partitions} partitions, but the sink keeps the partition of each record "
        f"(partitioner={SOURCE!r}), and the input has {needed}: give the topic as many, or choose another partitioner"
    )


def partitions_of(
    partitioner: Partitioner, batch: Batch, topic: str, count: int, errors: dict[int, RecordError]
) -> Iterable[int]:
    """Return the partition of each record of a batch that goes to a topic with so many partitions.

    Those for which a function names none are put into `errors`, by their index.
    """
    if isinstance(batch.rows[0], PassedTime):
        return partitions_of_rows(batch.rows)
    if callable(partitioner):
        return _by_function(partitioner, batch, count, errors)
    match partitioner:
        case "source":
            return _by_source(batch, topic, count, errors)
        case "as written elsewhere" if any(isinstance(key, bytes) for key in batch.keys):
            return [_hash(key) % count if isinstance(key, bytes) else BY_PRODUCER for key in batch.keys]
        case _:
            return repeat(BY_PRODUCER)


def _by_source(batch: Batch, topic: str, count: int, errors: dict[int, RecordError]) -> list[int]:
    numbers = partitions_of_rows(batch.rows)
    if max(numbers) < count:
        return numbers
    for index, number in enumerate(numbers):
        if number >= count:
            cause = RecordFault(ConfigurationError(f"{named(batch.rows[index])}: {too_few(topic, count, number + 1)}"))
            errors[index] = RecordError(batch.rows[index], ErrorStage.KAFKA_PRODUCE, _CHOOSING, cause)
    return [number if number < count else BY_PRODUCER for number in numbers]


def _by_function(
    function: Callable[[Record, int], int], batch: Batch, count: int, errors: dict[int, RecordError]
) -> list[int]:
    numbers: list[int] = []
    for index, (row, record) in enumerate(zip(batch.rows, batch.records(), strict=True)):
        try:
            number = function(record, count)
            if not isinstance(number, int) or isinstance(number, bool):
                raise TypeError(f"it must return the number of a partition, not {number!r}")
            if not 0 <= number < count:
                raise ValueError(f"there is no partition {number}: the topic has {count}, from 0 to {count - 1}")
        except TERMINATION:
            raise
        except BaseException as error:  # noqa: BLE001 - it is an error of the record
            errors[index] = RecordError(row, ErrorStage.KAFKA_PRODUCE, _CHOOSING, error)
            number = BY_PRODUCER
        numbers.append(number)
    return numbers
