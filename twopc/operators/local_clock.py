"""The clocks of a timezone: how far they are ahead of UTC, and when they show something first.

Times are Unix milliseconds; what is shown is counted as if it were Unix time. Clocks change at most once in two days.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from twopc.clock import LATEST_MS
from twopc.duration import DAY_MS

_EPOCH = datetime.fromtimestamp(0, UTC)
_MILLISECOND = timedelta(milliseconds=1)

_FIRST_MS = (datetime.min.replace(tzinfo=UTC) - _EPOCH) // _MILLISECOND + 2 * DAY_MS
_LAST_MS = LATEST_MS - 2 * DAY_MS
"""Outside of these two there are no dates to ask a timezone for: it stays as it is there."""


class LocalClock:
    """The clocks of one timezone."""

    def __init__(self, zone: ZoneInfo) -> None:
        self._zone = zone

    def ahead(self, at: int) -> int:
        """Return how many milliseconds clocks are ahead of UTC."""
        moment = _EPOCH + min(max(at, _FIRST_MS), _LAST_MS) * _MILLISECOND
        ahead = moment.astimezone(self._zone).utcoffset()
        assert ahead is not None
        return ahead // _MILLISECOND

    def first(self, shown: int) -> int:
        """Return when clocks show this, or what is behind it, for the first time."""
        before, behind = self.ahead(shown - DAY_MS), self.ahead(shown + DAY_MS)
        if before == behind:
            return shown - before
        change = self.change(shown - DAY_MS, shown + DAY_MS)
        return shown - before if shown - before < change else max(change, shown - behind)

    def change(self, after: int, until: int) -> int:
        """Return when clocks change between two times at which they are differently far ahead."""
        ahead = self.ahead(after)
        while until - after > 1:
            middle = (after + until) // 2
            if self.ahead(middle) == ahead:
                after = middle
            else:
                until = middle
        return until
