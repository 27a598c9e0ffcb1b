"""How many records the next batch may have: as many as cost little time, and no more.

A trigger waits for the batch in hand, so the time that a batch takes is part of the latency of every checkpoint. Of
that time only what each record adds can be saved by a smaller batch: what a call costs it costs for one record too.
"""

from __future__ import annotations

RECORDS_MIN, RECORDS_MAX = 1, 1_000
"""The bounds, unless the settings name others. More in a batch costs more in allocations than it saves in calls."""

SECONDS = 0.05
"""How much time the records of a batch may add."""

REMEMBERED = 0.8
"""How much a batch counts beside the one after it."""

ALIKE = 0.02
"""How little sizes may differ (the square of their relative deviation), to say nothing of what a record adds."""


class BatchSize:
    """Fits seconds = call + records * each to the latest batches; grows by doubling, from the smallest."""

    def __init__(self, least: int = RECORDS_MIN, most: int = RECORDS_MAX) -> None:
        self._least, self._most = least, most
        self.records = least
        self._weight = self._sizes = self._times = self._squares = self._products = 0.0

    def took(self, count: int, seconds: float) -> None:
        """Learn from a batch of `count` records that took this long to process and write."""
        self._note(count, seconds)
        each = self._seconds_each()
        greatest = self.records * 2 if count >= self.records else self.records
        affordable = SECONDS / each if each > SECONDS / self._most else self._most
        self.records = max(self._least, min(self._most, greatest, int(affordable)))

    def _note(self, count: int, seconds: float) -> None:
        self._weight = self._weight * REMEMBERED + 1
        self._sizes = self._sizes * REMEMBERED + count
        self._times = self._times * REMEMBERED + seconds
        self._squares = self._squares * REMEMBERED + count * count
        self._products = self._products * REMEMBERED + count * seconds

    def _seconds_each(self) -> float:
        """Return what a record adds: the slope. Sizes that are alike show none; then a greater one will tell."""
        spread = self._weight * self._squares - self._sizes**2
        if spread <= ALIKE * self._sizes**2:
            return 0.0
        return (self._weight * self._products - self._sizes * self._times) / spread
