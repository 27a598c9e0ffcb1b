"""Sessions: what comes at most a gap apart is one, and a record that comes between two makes one of them.

Held of each: the time of its last record, and what it comes to. Of those that are over, the time of the last record is
remembered: what comes at most a gap behind that is late, so that what is final is always more than a gap apart.

That is forgotten when such a record would be late by itself. A session that begins later could still be extended back
to there, by records that it takes in though they are late by themselves. So with it is remembered up to when a session
may have ended that is forgotten: a record is late there that was late when the session began.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce
from typing import Any

from twopc.operators.event_time import NEVER
from twopc.operators.window_kind import REMEMBERED, WINDOW_BYTES, Change, Open
from twopc.operators.window_step import WindowAggregate
from twopc.operators.window_values import Held, WindowValues
from twopc.state.forms import joined_windows, windows
from twopc.windows import Session, Window

Span = tuple[int, Held]
"""The time of the last record, and what the session comes to; where sessions are remembered, until when they are."""


class SessionWindows:
    """The sessions of one step."""

    end_is_behind = 0

    def __init__(self, step: WindowAggregate, kind: Session, values: WindowValues) -> None:
        self._values = values
        self._gap_ms = kind.gap_ms
        self._open_ms = kind.gap_ms + step.grace_ms + 1

    def change(self, windows: Open, stamp: int, now: int, value: Any) -> Change | None:
        gap_ms = self._gap_ms
        if REMEMBERED in windows and stamp <= windows[REMEMBERED][0] + gap_ms:
            return None
        near = sorted(start for start, (last, _) in windows.items() if start - gap_ms <= stamp <= last + gap_ms)
        if not near:
            return Change({stamp: (stamp, self._values.add(None, value))}) if stamp + self._open_ms > now else None
        first = min(stamp, near[0])
        last = max(stamp, *(windows[start][0] for start in near))
        held = reduce(self._values.merge, [windows[start][1] for start in near])
        return Change({first: (last, self._values.add(held, value))}, [start for start in near if start != first])

    def begin(self, change: Change, now: int) -> Open:
        if now == NEVER:
            return {}
        forgotten = now - self._open_ms - self._gap_ms
        # Behind the session, which is the first to be over.
        return {REMEMBERED: (forgotten, max(self.closes(*each) for each in change.put.items()) + 1)}

    def closes(self, start: int, held: Span) -> int:
        return int(held[1]) if start == REMEMBERED else held[0] + self._open_ms

    def take_over(self, windows: Open, at: int) -> list[tuple[int, Span]]:
        remembered = windows.pop(REMEMBERED, None)
        starts = sorted(start for start, held in windows.items() if self.closes(start, held) <= at)
        over = [(start, windows.pop(start)) for start in starts]
        if over or remembered is not None:
            ended: int = over[-1][1][0] if over else remembered[0]
            # From then on a record at most a gap behind it is late by itself, where no session that is open takes it.
            until = max(ended + self._gap_ms + self._open_ms, *(self.closes(*each) for each in windows.items()), at)
            if until > at:
                windows[REMEMBERED] = ended, until
        return over

    def window(self, start: int, held: Span) -> Window:
        return Window(start, held[0], self._values.shown(held[1]))

    def held(self, stored: list[bytes | None]) -> list[Open | None]:
        taken = self._values.taken
        return [
            None
            if each is None
            else {
                REMEMBERED if start > last else start: (last, start if start > last else taken(value))
                for start, last, value in windows(each)
            }
            for each in stored
        ]

    def stored(self, held: list[Open | None]) -> list[bytes | None]:
        return [None if each is None else joined_windows(self._entries(each)) for each in held]

    def size_bytes(self, held: Iterable[Open | None]) -> int:
        return sum(WINDOW_BYTES * len(each) for each in held if each is not None)

    def _entries(self, held: Open) -> Iterable[tuple[int, int, bytes]]:
        for start in sorted(held):
            last, value = held[start]
            if start == REMEMBERED:
                yield value, last, b""
            else:
                yield start, last, self._values.stored(value)
