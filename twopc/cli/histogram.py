"""Durations as a histogram that fits into one line of a terminal. Pure."""

from __future__ import annotations

from bisect import bisect_left

BOUNDS_MS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000)
"""The greatest duration of each bucket; one more bucket holds what is longer."""

_BARS = " ▁▂▃▄▅▆▇█"


class Histogram:
    """Counts durations, in milliseconds. A percentile is the bound of its bucket: up to 2.5 times too much."""

    def __init__(self) -> None:
        self.counts = [0] * (len(BOUNDS_MS) + 1)
        self.longest = 0.0

    def add(self, duration_ms: float) -> None:
        self.counts[bisect_left(BOUNDS_MS, duration_ms)] += 1
        self.longest = max(self.longest, duration_ms)

    def percentile(self, share: float) -> float | None:
        """Return a duration that this share of the durations doesn't exceed; None while there are none."""
        wanted, seen = share * sum(self.counts), 0
        for bound, count in zip((*BOUNDS_MS, self.longest), self.counts, strict=True):
            seen += count
            if count and seen >= wanted:
                return min(float(bound), self.longest)
        return None

    def __str__(self) -> str:
        """One bar for each bucket that is needed, with the bounds of the first and the last one."""
        used = [index for index, count in enumerate(self.counts) if count]
        if not used:
            return ""
        most = max(self.counts)
        first, last = used[0], used[-1]
        bars = "".join(_BARS[-(-self.counts[index] * (len(_BARS) - 1) // most)] for index in range(first, last + 1))
        below = f"≤{BOUNDS_MS[first]}" if first < len(BOUNDS_MS) else f">{BOUNDS_MS[-1]}"
        above = f"≤{BOUNDS_MS[last]} ms" if last < len(BOUNDS_MS) else f"{self.longest:.0f} ms"
        return f"{below} {bars} {above}"
