"""Tumbling and hopping windows: they begin at multiples, whatever the records are. Held: what each comes to."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from twopc.operators.window_kind import WINDOW_BYTES, Change, Open, refuse_other_windows
from twopc.operators.window_step import WindowAggregate
from twopc.operators.window_values import Held, WindowValues
from twopc.state.forms import joined_windows, windows
from twopc.windows import Hopping, Tumbling, Window


class AlignedWindows:
    """The windows of one step."""

    def __init__(self, step: WindowAggregate, kind: Tumbling | Hopping, values: WindowValues) -> None:
        self._step, self._values = step, values
        self._size_ms, self._every_ms = kind.size_ms, kind.every_ms
        self._open_ms = kind.size_ms + step.grace_ms

    def change(self, windows: Open, stamp: int, now: int, value: Any) -> Change | None:
        add = self._values.add
        start = stamp - stamp % self._every_ms
        put = {}
        while start > stamp - self._size_ms and start + self._open_ms > now:
            put[start] = add(windows.get(start), value)
            start -= self._every_ms
        return Change(put) if put else None

    def closes(self, start: int, held: Held) -> int:
        return start + self._open_ms

    def take_over(self, windows: Open, at: int) -> list[tuple[int, Held]]:
        latest = at - self._open_ms
        return [(start, windows.pop(start)) for start in sorted(windows) if start <= latest]

    def window(self, start: int, held: Held) -> Window:
        return Window(start, start + self._size_ms, self._values.shown(held))

    def timestamp(self, start: int, held: Held) -> int:
        return start + self._size_ms - 1

    def held(self, stored: list[bytes | None]) -> list[Open | None]:
        return [None if each is None else self._open(each) for each in stored]

    def stored(self, held: list[Open | None]) -> list[bytes | None]:
        size_ms, stored = self._size_ms, self._values.stored
        return [
            None if each is None else joined_windows((at, at + size_ms, stored(each[at])) for at in sorted(each))
            for each in held
        ]

    def size_bytes(self, held: Iterable[Open | None]) -> int:
        return sum(WINDOW_BYTES * len(each) for each in held if each is not None)

    def _open(self, stored: bytes) -> Open:
        taken = {}
        for start, end, value in windows(stored):
            if end - start != self._size_ms or start % self._every_ms:
                refuse_other_windows(self._step, start, end)
            taken[start] = self._values.taken(value)
        return taken
