"""The workload of a job under comparison: its input, and the judge of its output, record by record.

Every input record has a number of its own, from 0, and a key that follows from it; so the output tells which records
are missing, which came twice, and which are wrong.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import ClassVar, NamedTuple

from peers.case import Case

DIGITS = 12
_FILLER = b" the quick brown fox jumps over the lazy dog, and then it jumps back over it again, and again,"
BEGIN_MS = 1_700_000_000_000
"""The timestamp of the first record."""


def key_of(number: int, keys: int) -> bytes:
    """Return the key of an input record: in no order that a store would like."""
    return b"k%d" % (number * 7_919 % keys)


def timestamp_of(number: int) -> int:
    """Return the timestamp of an input record: each is a millisecond behind the one before it."""
    return BEGIN_MS + number


InputRecord = tuple[bytes, bytes, int]
"""Key, value, and milliseconds."""


class Judge(ABC):
    """Takes the output, partition by partition in order; `complaint` says what is wrong with it, if anything is."""

    def __init__(self, case: Case) -> None:
        self.case = case
        self.taken = 0
        self.strange = 0
        self._seen = bytearray(case.records)

    @abstractmethod
    def take(self, key: bytes | None, value: bytes | None) -> None: ...

    def complaint(self) -> str | None:
        """Say what is wrong, or None."""
        expected = self.expected()
        once = self._seen.count(1)
        if self.taken == expected == once and not self.strange:
            return None
        return f"{self.taken} records instead of {expected}, {once} of them once, {self.strange} not as they should be"

    def expected(self) -> int:
        return self.case.records

    def note(self, number: int, right: bool) -> None:
        """Count one record that says it is this one."""
        self.taken += 1
        if 0 <= number < self.case.records and self._seen[number] < 255:
            self._seen[number] += 1
        if not right:
            self.strange += 1


class SecondInput(NamedTuple):
    """A topic that a job reads beside its input; whatever has its name has the same records."""

    topic: str
    records: Iterator[InputRecord]


class Workload:
    """One job. `form` names the records that it reads; jobs with the same form read the same topic."""

    form: ClassVar[str]
    judge: ClassVar[type[Judge]]
    dead_judge: ClassVar[type[Judge] | None] = None
    """Who judges its dead letters, where it has any."""

    @staticmethod
    def values(case: Case) -> Callable[[int], bytes]:
        """Return what makes the value of an input record from its number."""
        raise NotImplementedError

    @staticmethod
    def second(case: Case) -> SecondInput | None:
        """Return the second topic that it reads; None where it reads one."""
        return None


def filled(size: int) -> bytes:
    """Return the constant part of a text value of this size."""
    return (_FILLER * (size // len(_FILLER) + 1))[: max(0, size - DIGITS)]


class Text(Workload):
    """Values of text: the record's number, and a filler."""

    form = "text"

    @staticmethod
    def values(case: Case) -> Callable[[int], bytes]:
        rest = filled(case.value_bytes)
        return lambda number: b"%012d%b" % (number, rest)
