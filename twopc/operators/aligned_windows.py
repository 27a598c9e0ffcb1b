"""Tumbling and hopping windows: they begin at fixed times, whatever the records are. Held: what each comes to."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from twopc.operators.window_kind import WINDOW_BYTES, Change, Open, refuse_other_windows
from twopc.operators.window_starts import starts_of
from twopc.operators.window_step import WindowAggregate
from twopc.operators.window_values import Held, WindowValues
from twopc.state.forms import joined_windows, windows
from twopc.windows import Aligned, Window


class _Span(NamedTuple):
    """One window: from its start to the time behind its last millisecond."""

    start: int
    end: int


class AlignedWindows:
    """The windows of one step."""

    end_is_behind = 1

    def __init__(self, step: WindowAggregate, kind: Aligned, values: WindowValues) -> None:
        self._step, self._values, self._grace_ms = step, values, step.grace_ms
        self._starts = starts_of(kind)
        self._since = self._until = 0
        self._around: list[_Span] = []

    def change(self, windows: Open, stamp: int, now: int, value: Any) -> Change | None:
        # Most records come between the same two starts as the one before.
        if not self._since <= stamp < self._until:
            self._move(stamp)
        add, latest = self._values.add, now - self._grace_ms
        put = {}
        for start, end in self._around:
            if end <= stamp or end <= latest:
                break
            put[start] = add(windows.get(start), value)
        return Change(put) if put else None

    def begin(self, change: Change, now: int) -> Open:
        return {}

    def closes(self, start: int, held: Held) -> int:
        return self._starts.end(start) + self._grace_ms

    def take_over(self, windows: Open, at: int) -> list[tuple[int, Held]]:
        return [
            (start, windows.pop(start)) for start in sorted(windows) if self._starts.end(start) + self._grace_ms <= at
        ]

    def window(self, start: int, held: Held) -> Window:
        return Window(start, self._starts.end(start), self._values.shown(held))

    def held(self, stored: list[bytes | None]) -> list[Open | None]:
        return [None if each is None else self._open(each) for each in stored]

    def stored(self, held: list[Open | None]) -> list[bytes | None]:
        end, stored = self._starts.end, self._values.stored
        return [
            None if each is None else joined_windows((at, end(at), stored(each[at])) for at in sorted(each))
            for each in held
        ]

    def size_bytes(self, held: Iterable[Open | None]) -> int:
        return sum(WINDOW_BYTES * len(each) for each in held if each is not None)

    def _open(self, stored: bytes) -> Open:
        taken = {}
        for start, end, value in windows(stored):
            if self._starts.latest(start) != start or self._starts.end(start) != end:
                refuse_other_windows(self._step, start, end)
            taken[start] = self._values.taken(value)
        return taken

    def _move(self, stamp: int) -> None:
        """Find the windows, latest first, that may hold a record between the two starts around this time."""
        start = self._since = self._starts.latest(stamp)
        self._until = self._starts.next(start)
        self._around = []
        while (end := self._starts.end(start)) > self._since:
            self._around.append(_Span(start, end))
            start = self._starts.latest(start - 1)
