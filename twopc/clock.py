"""Clocks: the machine's, and one that a test moves."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Protocol

from twopc.protocol.times import Instant

LATEST_MS = 253_402_300_799_999
"""The last millisecond of the year 9999. Later times are none: of a clock that counts nanoseconds, or of a bad record,
and one of them would close every window for ever.
"""


def date(at: int) -> str:
    """Return a time in Unix milliseconds as people read it."""
    return datetime.fromtimestamp(min(at, LATEST_MS) // 1000, UTC).isoformat().replace("+00:00", "Z")


class Clock(Protocol):
    """Tells the time."""

    def now(self) -> Instant: ...

    def monotonic(self) -> float:
        """Seconds on a clock that never jumps."""
        ...


class SystemClock:
    """The clocks of this machine."""

    def now(self) -> Instant:
        return Instant(time.monotonic_ns() // 1_000_000, time.time_ns() // 1_000_000)

    def monotonic(self) -> float:
        return time.monotonic()


class ManualClock:
    """Stands still until it is moved."""

    def __init__(self, monotonic_ms: int = 0, unix_ms: int = 1_700_000_000_000) -> None:
        self._now = Instant(monotonic_ms, unix_ms)

    def now(self) -> Instant:
        return self._now

    def monotonic(self) -> float:
        return self._now.monotonic_ms / 1000

    def advance(self, milliseconds: int) -> Instant:
        """Move both clocks on; return the new time."""
        self._now = Instant(self._now.monotonic_ms + milliseconds, self._now.unix_ms + milliseconds)
        return self._now
