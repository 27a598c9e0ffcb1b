"""The number of records that went wrong while their job went on, by kind: for people and monitoring. Frozen values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from twopc.protocol.figures import DEAD_LETTERS, RECORDS_SKIPPED, Figures

COUNTS_MAX = 100
"""How many pairs of a source and an operator are told apart."""

OTHERS = "others"
"""The operator of what went wrong in all that are not told apart."""

TEXTS_MAX = 3
"""How many counts one line of text has."""


@dataclass(frozen=True, slots=True)
class RecordErrorCount:
    """The number of errors on a source's records in one operator or serde: of records left out, and of dead letters."""

    source: str
    operator: str
    skipped: int = 0
    dead_letters: int = 0

    def __str__(self) -> str:
        return f"{_counted(self.skipped, self.dead_letters)} of {self.source!r} in {self.operator}"

    @property
    def total(self) -> int:
        return self.skipped + self.dead_letters


@dataclass(frozen=True, slots=True)
class RecordErrorKind:
    """The first record of its kind: of one source, one operator or serde, and one class of exception.

    `message` names the record, says what was raised, and by which policy the job went on.
    """

    source: str
    operator: str
    error_type: str
    message: str


class RecordErrorCounter:
    """Counts errors by source and operator, in the order in which they first come."""

    def __init__(self) -> None:
        self._skipped: Counter[tuple[str, str]] = Counter()
        self._dead_letters: Counter[tuple[str, str]] = Counter()

    def add(self, source: str, operator: str, *, skipped: int = 0, dead_letters: int = 0) -> None:
        """Count more errors; those of the pairs beyond the first `COUNTS_MAX` together, by source."""
        at = (source, operator)
        if at not in self._skipped and len(self._skipped) >= COUNTS_MAX:
            at = (source, OTHERS)
        self._skipped[at] += skipped
        self._dead_letters[at] += dead_letters

    def counts(self) -> tuple[RecordErrorCount, ...]:
        """Return what was counted so far."""
        return tuple(RecordErrorCount(*at, skipped, self._dead_letters[at]) for at, skipped in self._skipped.items())

    def figures(self) -> Figures:
        """Return the same as figures."""
        return dict((RECORDS_SKIPPED.of(self._skipped.items()), DEAD_LETTERS.of(self._dead_letters.items())))


def counts_in(told: Iterable[Figures | None]) -> tuple[RecordErrorCount, ...]:
    """Return one count for each source and operator that the figures of several subtasks tell of."""
    counter = RecordErrorCounter()
    for figures in filter(None, told):
        for (source, operator), value in RECORDS_SKIPPED.values_in(figures):
            counter.add(source, operator, skipped=value)
        for (source, operator), value in DEAD_LETTERS.values_in(figures):
            counter.add(source, operator, dead_letters=value)
    return counter.counts()


def texts_of(counts: Iterable[RecordErrorCount]) -> tuple[str, ...]:
    """Return the greatest counts as text, and one text for all others."""
    ordered = sorted(counts, key=lambda count: -count.total)
    texts, rest = list(map(str, ordered[:TEXTS_MAX])), ordered[TEXTS_MAX:]
    if rest:
        both = _counted(sum(each.skipped for each in rest), sum(each.dead_letters for each in rest))
        texts.append(f"{both} in {len(rest):,} more")
    return tuple(texts)


def _counted(skipped: int, dead_letters: int) -> str:
    parts = [f"{skipped:,} skipped"] if skipped else []
    parts += [f"{dead_letters:,} dead letter{'' if dead_letters == 1 else 's'}"] if dead_letters else []
    return " and ".join(parts)
