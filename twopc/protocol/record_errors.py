"""The number of records that went wrong while their job went on, by kind: for people and monitoring. Frozen values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RecordErrorCount:
    """The number of a source's record errors that were left out, and of those that are dead letters instead."""

    source: str
    skipped: int = 0
    dead_letters: int = 0

    def __str__(self) -> str:
        parts = [f"{self.skipped:,} skipped"] if self.skipped else []
        parts += [f"{self.dead_letters:,} dead letters"] if self.dead_letters else []
        return f"{' and '.join(parts)} of {self.source!r}"


@dataclass(frozen=True, slots=True)
class RecordErrorKind:
    """The first record of its kind: of one source, one operator or serde, and one class of exception.

    `message` names the record, says what was raised, and by which policy the job went on.
    """

    source: str
    operator: str
    error_type: str
    message: str


def summed(counts: Iterable[RecordErrorCount]) -> tuple[RecordErrorCount, ...]:
    """Return one count for each source, in the order in which they first come."""
    skipped: Counter[str] = Counter()
    dead_letters: Counter[str] = Counter()
    for each in counts:
        skipped[each.source] += each.skipped
        dead_letters[each.source] += each.dead_letters
    return tuple(RecordErrorCount(source, skipped[source], dead_letters[source]) for source in skipped)
