"""The dead letters of a topic: read, counted out by age, and as rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from heapq import nlargest
from typing import Any

from twopc.kafka.clients.cluster import Cluster
from twopc.kafka.found_letter import FoundLetter, letter_of, mark_of
from twopc.kafka.input.topic_reader import Ranges, read
from twopc.kafka.place import Place
from twopc.kafka.record_rows import named
from twopc.kafka.topic_partition import Position


def read_letters(cluster: Cluster, ranges: Ranges) -> Iterator[FoundLetter]:
    """Yield the dead letters, in the order of each partition."""
    return filter(None, map(letter_of, _records(cluster, ranges)))


def read_marks(cluster: Cluster, ranges: Ranges) -> frozenset[Place]:
    """Return which letters of a topic were replayed: their marks stand behind them, anywhere."""
    return frozenset(filter(None, map(mark_of, _records(cluster, ranges))))


def newest_of(found: Iterable[FoundLetter], most: int) -> list[FoundLetter]:
    """Return the newest, oldest first."""
    return nlargest(most, found, key=lambda each: (each.timestamp or 0, each.place.offset))[::-1]


def tail(ranges: Ranges, most: int) -> Ranges:
    """Return the last so many places of each partition."""
    return {at: (max(first, Position(end - most)), end) for at, (first, end) in ranges.items()}


def row_of_letter(letter: FoundLetter, replayed: bool) -> dict[str, Any]:
    """Return all of a letter, ready for JSON."""
    return {
        "letter": str(letter.place),
        "record": None if letter.origin is None else str(letter.origin),
        "timestamp": letter.timestamp,
        **named("key", letter.key),
        **named("value", letter.value),
        "headers": [{"name": name, **named("value", value)} for name, value in letter.headers],
        "job": letter.text("connector.name"),
        "stage": letter.text("stage"),
        "step": letter.text("class.name"),
        "exception": letter.text("exception.class.name"),
        "message": letter.text("exception.message"),
        "stacktrace": letter.text("exception.stacktrace"),
        "shortened": letter.shortened,
        "replayed": replayed,
    }


def _records(cluster: Cluster, ranges: Ranges) -> Iterator[Any]:
    for batch in read(cluster, ranges):
        yield from batch.rows
