"""How many records the next batch may have: many while functions are fast, few while they are slow.

A trigger waits for the batch in hand, so the time that a batch takes is part of the latency of every checkpoint.
"""

from __future__ import annotations

RECORDS_MAX = 1_000
"""More in a batch costs more in allocations than it saves in calls."""

RECORDS_FIRST = 64
"""Before anything is known of the functions' speed."""

SECONDS_MAX = 0.05


class BatchSize:
    """Halves when a batch took too long, doubles when a full one was quick."""

    def __init__(self) -> None:
        self.records = RECORDS_FIRST

    def took(self, count: int, seconds: float) -> None:
        """Learn from a batch of `count` records that took this long to process and write."""
        if seconds > SECONDS_MAX:
            self.records = max(1, min(count, self.records) // 2)
        elif count == self.records and seconds < SECONDS_MAX / 4:
            self.records = min(RECORDS_MAX, self.records * 2)
