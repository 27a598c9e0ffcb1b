"""Where windows begin by the clocks of a timezone. All times are Unix milliseconds."""

from __future__ import annotations

from functools import lru_cache
from zoneinfo import ZoneInfo

from twopc.duration import DAY_MS
from twopc.operators.local_clock import LocalClock
from twopc.operators.window_starts import WindowStarts
from twopc.windows import Aligned

MONDAY_MS = 4 * DAY_MS
"""1970-01-05: days are counted from there on, so that weeks begin on Mondays."""

_ANSWERS = 1_000


def local_starts(kind: Aligned, timezone: str) -> WindowStarts:
    """Return where the windows of this kind begin in this timezone."""
    clock = LocalClock(ZoneInfo(timezone))
    return _Remembered(_DayStarts(kind, clock) if kind.every_ms % DAY_MS == 0 else _HourStarts(kind, clock))


class _Remembered:
    """Starts with their last answers at hand: the same windows are open under many keys."""

    def __init__(self, starts: WindowStarts) -> None:
        self.latest, self.next, self.end = map(lru_cache(_ANSWERS), (starts.latest, starts.next, starts.end))


class _LocalStarts:
    """What both need: the distance of starts, by how much they are shifted, and how many a window spans."""

    def __init__(self, kind: Aligned, clock: LocalClock) -> None:
        self._every_ms, self._shift_ms, self._clock = kind.every_ms, kind.shift_ms, clock
        self._steps = kind.size_ms // kind.every_ms


class _DayStarts(_LocalStarts):
    """Whole days: each begins when clocks show its beginning, or what is behind that, for the first time."""

    def latest(self, at: int) -> int:
        return self._start(self._number(at))

    def next(self, start: int) -> int:
        return self._start(self._number(start) + 1)

    def end(self, start: int) -> int:
        return self._start(self._number(start) + self._steps)

    def _number(self, at: int) -> int:
        number = (at + self._clock.ahead(at) - self._shift_ms - MONDAY_MS) // self._every_ms
        # Clocks that go back over midnight show the day before once more.
        return number + 1 if self._start(number + 1) <= at else number

    def _start(self, number: int) -> int:
        return self._clock.first(number * self._every_ms + self._shift_ms + MONDAY_MS)


class _HourStarts(_LocalStarts):
    """Parts of a day: one begins whenever clocks show its beginning, or jump over it."""

    def latest(self, at: int) -> int:
        ahead = self._clock.ahead(at)
        start = at - self._behind(at + ahead)
        if self._clock.ahead(start) == ahead:
            return start
        change = self._clock.change(start, at)
        jumped = ahead - self._clock.ahead(change - 1)
        return change if -self._behind(change + ahead - jumped) % self._every_ms < jumped else self.latest(change - 1)

    def next(self, start: int) -> int:
        ahead = self._clock.ahead(start)
        following = start - self._behind(start + ahead) + self._every_ms
        if self._clock.ahead(following) == ahead:
            return following
        change = self._clock.change(start, following)
        return change if self.latest(change) == change else self.next(change)

    def end(self, start: int) -> int:
        for _ in range(self._steps):
            start = self.next(start)
        return start

    def _behind(self, shown: int) -> int:
        """Return how far this local time is behind the last multiple."""
        return (shown - self._shift_ms) % self._every_ms
