"""The windows of other kinds under one partition number, by their definitions: hopping, sessions, sliding."""

from __future__ import annotations

from bisect import bisect, bisect_left, insort
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field

from tests.crash_cells.every_operator import (
    GRACE_MS,
    HOP_MS,
    SESSION_GAP_MS,
    SLIDING_GRACE_MS,
    SLIDING_MS,
    WINDOW_MS,
)


@dataclass(slots=True)
class _Session:
    start: int
    last: int
    count: int

    @property
    def closes(self) -> int:
        return self.last + SESSION_GAP_MS + GRACE_MS + 1


@dataclass(slots=True)
class Windows:
    """What is open; `tell` gets the kind, the key, and start and count of a window that has closed.

    No record is late for a sliding window, so those are told by the times of all records of a key alone.
    """

    tell: Callable[[str, bytes, list[int]], object]
    hopping: Counter[tuple[int, bytes]] = field(default_factory=Counter)
    sessions: defaultdict[bytes, list[_Session]] = field(default_factory=lambda: defaultdict(list))
    ended: dict[bytes, int] = field(default_factory=dict)
    """The last record of the sessions of a key that are over."""
    times: defaultdict[bytes, list[int]] = field(default_factory=lambda: defaultdict(list))
    starts: set[tuple[int, bytes]] = field(default_factory=set)

    def see(self, key: bytes, at: int, now: float) -> None:
        """Take in a record, when time has reached `now`."""
        for start in range(at // HOP_MS * HOP_MS, at - WINDOW_MS, -HOP_MS):
            if start + WINDOW_MS + GRACE_MS > now:
                self.hopping[start, key] += 1
        insort(self.times[key], at)
        self.starts |= {(at - SLIDING_MS, key), (at + 1, key)}
        self._see_in_session(key, at, now)

    def let_pass(self, now: float) -> None:
        """Time reaches this: windows close."""
        for start, key in sorted(each for each in self.hopping if each[0] + WINDOW_MS + GRACE_MS <= now):
            self.tell("hopping", key, [start, self.hopping.pop((start, key))])
        for key, every in self.sessions.items():
            for each in sorted(every, key=lambda each: each.closes):
                if each.closes <= now:
                    every.remove(each)
                    self.ended[key] = each.last
                    self.tell("session", key, [each.start, each.count])
        self._slide(now)

    def _see_in_session(self, key: bytes, at: int, now: float) -> None:
        every = self.sessions[key]
        near = [each for each in every if each.start - SESSION_GAP_MS <= at <= each.last + SESSION_GAP_MS]
        whole = _Session(
            min([at, *(each.start for each in near)]),
            max([at, *(each.last for each in near)]),
            1 + sum(each.count for each in near),
        )
        is_late = key in self.ended and at <= self.ended[key] + SESSION_GAP_MS
        if not is_late and (near or whole.closes > now):
            self.sessions[key] = [*(each for each in every if each not in near), whole]

    def _slide(self, now: float) -> None:
        for start, key in sorted(each for each in self.starts if each[0] + SLIDING_MS + SLIDING_GRACE_MS < now):
            self.starts.remove((start, key))
            times = self.times[key]
            if count := bisect(times, start + SLIDING_MS) - bisect_left(times, start):
                self.tell("sliding", key, [start, count])
