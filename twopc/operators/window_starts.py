"""Where the windows of one size begin: at multiples of their distance in Unix time, or by the clocks of a timezone."""

from __future__ import annotations

from typing import Protocol

from twopc.windows import Aligned


class WindowStarts(Protocol):
    """The starts of windows, each of which has one end. All are Unix milliseconds."""

    def latest(self, at: int) -> int:
        """Return the last start that is not behind this time."""

    def next(self, start: int) -> int:
        """Return the start behind this one."""

    def end(self, start: int) -> int:
        """Return the end of the window that begins here: the time behind its last millisecond."""


def starts_of(kind: Aligned) -> WindowStarts:
    """Return where the windows of this kind begin."""
    if kind.timezone is None:
        return _UnixStarts(kind)
    # The standard library's timezones take a while to import, and few jobs have any.
    from twopc.operators.local_starts import local_starts

    return local_starts(kind, kind.timezone)


class _UnixStarts:
    """Multiples in Unix time."""

    def __init__(self, kind: Aligned) -> None:
        self._size_ms, self._every_ms, self._shift_ms = kind.size_ms, kind.every_ms, kind.shift_ms

    def latest(self, at: int) -> int:
        return at - (at - self._shift_ms) % self._every_ms

    def next(self, start: int) -> int:
        return start + self._every_ms

    def end(self, start: int) -> int:
        return start + self._size_ms
