"""The size of the next batch: as many records as cost little time, and no more.

A trigger waits for the batch in hand, so the time that a batch takes is part of the latency of every checkpoint. Of
that time only what each record adds can be saved by a smaller batch: what a call costs it costs for one record too.

What packed columns cost is, of a thousand records, a third the calls: so of those a batch may have more. Objects leave
the processor's cache before they are used again, where there are many.
"""

from __future__ import annotations

from typing import Self

MOST = 1_000
"""How many records a batch has at most, where nobody says it."""

MOST_PACKED = 8_000
"""The same of records that came out as packed columns."""

PACKED_BYTES = 4_000_000
"""How many bytes the values of so many may have: of larger records there are fewer, but no fewer than of objects."""

SECONDS = 0.05
"""How much time the records of a batch may add."""

REMEMBERED = 0.8
"""How much a batch counts beside the one after it."""

ALIKE = 0.02
"""How little sizes may differ (the square of their relative deviation), to say nothing of what a record adds."""


class BatchSize:
    """Fits seconds = call + records * each to the latest batches; grows by doubling, from the smallest."""

    def __init__(self, least: int, most: int, most_packed: int | None = None) -> None:
        """`most_packed` is the most while records come out as packed columns, if that is another."""
        self._least, self._most = least, most
        self._most_packed = most if most_packed is None else most_packed
        self.records = least
        self.busy_seconds = 0.0
        """How long all batches took."""
        self._weight = self._sizes = self._times = self._squares = self._products = 0.0

    @classmethod
    def within(cls, least: int, most: int | None) -> Self:
        """Return one for these settings, of which the greater may be left to it."""
        objects, packed = (MOST, MOST_PACKED) if most is None else (most, most)
        return cls(least, max(least, objects), max(least, packed))

    def took(self, count: int, seconds: float, packed_bytes: int | None = None) -> None:
        """Learn from a batch of `count` records that took this long to process and write.

        `packed_bytes` is how many bytes their values have as packed columns; None of those that were objects.
        """
        self.busy_seconds += seconds
        self._note(count, seconds)
        each = self._seconds_each()
        if each is None:
            is_slow = self._times / self._weight > SECONDS
            # The worst is assumed, that all of it is the records', where a smaller batch can show whether that is so.
            each = self._times / self._sizes if is_slow and self.records > self._least else 0.0
        greatest = self.records * 2 if count >= self.records else self.records
        most = self._most
        if packed_bytes is not None:
            most = max(most, min(self._most_packed, PACKED_BYTES * count // max(1, packed_bytes)))
        affordable = SECONDS / each if each > SECONDS / most else most
        self.records = max(self._least, min(most, greatest, int(affordable)))

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
