"""Sliding windows: they begin where a record comes into a window of that length, and where one drops out.

What is in a window changes, as its start slides along, `size` before the time of a record and right behind it, and is
the same from one such start to the next. So what is held at a start holds up to the next one, or to the time of its
last record, behind which there is nothing; and a new window begins with what the one before it has. Of those that are
over the content of the last is remembered, for as long as an open one may begin with it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from twopc.operators.window_kind import REMEMBERED, WINDOW_BYTES, Change, Open, refuse_other_windows
from twopc.operators.window_step import WindowAggregate
from twopc.operators.window_values import Held, WindowValues
from twopc.state.forms import content, joined_windows, time_of, timed, windows
from twopc.windows import Sliding, Window


class Content(NamedTuple):
    """The content of a window from `since` up to `last`, the time of its last record, in those behind it."""

    since: int
    last: int
    held: Held


class SlidingWindows:
    """The windows of one step."""

    end_is_behind = 0

    def __init__(self, step: WindowAggregate, kind: Sliding, values: WindowValues) -> None:
        self._step, self._values = step, values
        self._size_ms = kind.size_ms
        self._open_ms = kind.size_ms + step.grace_ms + 1

    def change(self, windows: Open, stamp: int, now: int, value: object) -> Change | None:
        first_open = now - self._open_ms + 1
        if stamp < first_open:
            return None
        add = self._values.add
        left, right = max(stamp - self._size_ms, first_open), stamp + 1
        contents = _sorted(windows)
        put: dict[int, Content] = {}
        for (start, each), (_, behind) in pairwise([*contents, (0, Content(stamp + 2, 0, None))]):
            if left <= each.since <= stamp:
                put[start] = Content(each.since, max(each.last, stamp), add(each.held, value))
            empty = each.last + 1
            if left < empty < min(behind.since, right):
                put[empty] = Content(empty, stamp, add(None, value))
        if right not in windows and (before := _at(contents, right)) is not None:
            put[right] = before._replace(since=right)
        if left not in windows:
            # Where the record reaches further back, and no record drops out right before, no window begins there: what
            # is there is remembered, not told.
            begins = left == stamp - self._size_ms or any(each.last + 1 == left for _, each in contents)
            start = left if begins else REMEMBERED
            before = _at(contents, left) or Content(left, stamp, None)
            put.setdefault(start, Content(left, max(before.last, stamp), add(before.held, value)))
        return Change(put)

    def begin(self, change: Change, now: int) -> Open:
        return {}

    def closes(self, start: int, held: Content) -> int:
        return (held.last + 1 if start == REMEMBERED else start) + self._open_ms

    def take_over(self, windows: Open, at: int) -> list[tuple[int, Content]]:
        latest = at - self._open_ms
        over = [(start, windows.pop(start)) for start in sorted(windows) if REMEMBERED < start <= latest]
        remembered = windows.pop(REMEMBERED, None)
        if over and (remembered is None or remembered.since <= over[-1][0]):
            remembered = over[-1][1]
        # Right behind its last record a window begins.
        if remembered is not None and remembered.last >= latest:
            windows[REMEMBERED] = remembered
        return over

    def window(self, start: int, held: Content) -> Window:
        return Window(start, start + self._size_ms, self._values.shown(held.held))

    def held(self, stored: list[bytes | None]) -> list[Open | None]:
        return [None if each is None else dict(self._open(each)) for each in stored]

    def stored(self, held: list[Open | None]) -> list[bytes | None]:
        return [None if each is None else joined_windows(self._entries(each)) for each in held]

    def size_bytes(self, held: Iterable[Open | None]) -> int:
        return sum(WINDOW_BYTES * len(each) for each in held if each is not None)

    def _entries(self, held: Open) -> Iterator[tuple[int, int, bytes]]:
        for start, (since, last, value) in _sorted(held):
            end = since - self._size_ms if start == REMEMBERED else since + self._size_ms
            yield since, end, timed(last, self._values.stored(value))

    def _open(self, stored: bytes) -> Iterator[tuple[int, Content]]:
        for since, end, value in windows(stored):
            if abs(end - since) != self._size_ms:
                refuse_other_windows(self._step, since, end)
            last = time_of(value)
            assert last is not None, "every window has a record"
            start = REMEMBERED if end < since else since
            yield start, Content(since, last, self._values.taken(content(value)))


def _sorted(windows: Open) -> list[tuple[int, Content]]:
    """Return what is held by where it begins to hold; what is remembered before the window that begins there."""
    return sorted(windows.items(), key=lambda each: (each[1].since, each[0]))


def _at(contents: Sequence[tuple[int, Content]], start: int) -> Content | None:
    """Return what is in a window that begins there, None for nothing."""
    found = None
    for _, each in contents:
        if each.since > start:
            break
        found = each
    return found if found is not None and found.last >= start else None
