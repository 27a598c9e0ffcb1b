"""How many records the next batch may have: as many as cost little time, and no more.

A trigger waits for the batch in hand, so the time that a batch takes is part of the latency of every checkpoint. Of
that time only what each record adds can be saved by a smaller batch: what a call costs it costs for one record too.
"""

from __future__ import annotations

SECONDS = 0.05
"""How much time the records of a batch may add."""

REMEMBERED = 0.8
"""How much a batch counts beside the one after it."""

ALIKE = 0.02
"""How little sizes may differ (the square of their relative deviation), to say nothing of what a record adds."""


class BatchSize:
    """Fits seconds = call + records * each to the latest batches; grows by doubling, from the smallest."""

    def __init__(self, least: int, most: int) -> None:
        self._least, self._most = least, most
        self.records = least
        self._weight = self._sizes = self._times = self._squares = self._products = 0.0

    def took(self, count: int, seconds: float) -> None:
        """Learn from a batch of `count` records that took this long to process and write."""
        self._note(count, seconds)
        each = self._seconds_each()
        if each is None:
            is_slow = self._times / self._weight > SECONDS
            # The worst is assumed, that all of it is the records', where a smaller batch can show whether that is so.
            each = self._times / self._sizes if is_slow and self.records > self._least else 0.0
        greatest = self.records * 2 if count >= self.records else self.records
        affordable = SECONDS / each if each > SECONDS / self._most else self._most
        self.records = max(self._least, min(self._most, greatest, int(affordable)))

    def _note(self, count: int, seconds: float) -> None:
        self._weight = self._weight * REMEMBERED + 1
        self._sizes = self._sizes * REMEMBERED + count
        self._times = self._times * REMEMBERED + seconds
        self._squares = self._squares * REMEMBERED + count * count
        self._products = self._products * REMEMBERED + count * seconds

    def _seconds_each(self) -> float | None:
        """Return what a record adds: the slope. Sizes that are alike show none."""
        spread = self._weight * self._squares - self._sizes**2
        if spread <= ALIKE * self._sizes**2:
            return None
        return (self._weight * self._products - self._sizes * self._times) / spread
