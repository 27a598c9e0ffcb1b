"""The kinds of windows by their definitions: which windows of a key a record changes. All times are milliseconds."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from functools import reduce
from typing import NamedTuple, assert_never

from twopc.operators.window_starts import starts_of
from twopc.operators.window_step import WindowAggregate
from twopc.verify.plain.timed import BEFORE_ALL
from twopc.verify.plain.values import PlainValues
from twopc.windows import Aligned, Hopping, Session, Sliding, Tumbling, Window


class OpenWindow(NamedTuple):
    """A window by its end, the stream time at which it is over, and what it comes to, encoded."""

    end: int
    closes: int
    value: bytes


Change = Mapping[int, OpenWindow | None]
"""The windows that a record makes or changes, by their starts; None for one that has become part of another."""


class KeyWindows(ABC):
    """The windows of one key under one partition number, by their starts."""

    last_ms = 0
    """How far the last millisecond of a window is before its end."""

    def __init__(self, values: PlainValues, grace_ms: int) -> None:
        self._values, self._grace_ms = values, grace_ms
        self.open: dict[int, OpenWindow] = {}
        self.key: object = None

    @abstractmethod
    def change(self, stamp: int, seen: int, value: object) -> Change | None:
        """Return what a record changes that is seen at a stream time; None for a late one. Changes nothing itself."""

    def begin(self, now: int) -> None:
        """A window is about to open at this stream time, and none is open."""

    def took(self, stamp: int, seen: int, value: object) -> None:
        """A record has made its change."""

    def ended(self, window: OpenWindow) -> None:
        """One is over."""

    def window(self, start: int) -> Window:
        """Return an open window as it is told."""
        found = self.open[start]
        return Window(start, found.end, self._values.shown(found.value))


class _Aligned(KeyWindows):
    last_ms = 1

    def __init__(self, values: PlainValues, grace_ms: int, kind: Aligned) -> None:
        super().__init__(values, grace_ms)
        self._spans = _spans(kind)

    def change(self, stamp: int, seen: int, value: object) -> Change | None:
        changed: dict[int, OpenWindow] = {}
        for start, end in self._spans(stamp):
            if end + self._grace_ms > seen:
                before = self.open.get(start)
                held = self._values.add(None if before is None else before.value, value)
                changed[start] = OpenWindow(end, end + self._grace_ms, held)
        return changed or None


class _Sessions(KeyWindows):
    """What comes at most a gap behind a session that was told is late, and what was late when an open one began."""

    def __init__(self, values: PlainValues, grace_ms: int, kind: Session) -> None:
        super().__init__(values, grace_ms)
        self._gap_ms = kind.gap_ms
        self._open_ms = kind.gap_ms + grace_ms + 1
        self._late_until = BEFORE_ALL

    def change(self, stamp: int, seen: int, value: object) -> Change | None:
        gap = self._gap_ms
        near = sorted(start for start, each in self.open.items() if start - gap <= stamp <= each.end + gap)
        if stamp <= self._late_until or (not near and stamp + self._open_ms <= seen):
            return None
        changed: dict[int, OpenWindow | None] = dict.fromkeys(near)
        held = reduce(self._values.merge, [self.open[start].value for start in near]) if near else None
        last = max([stamp, *(self.open[start].end for start in near)])
        changed[min([stamp, *near])] = OpenWindow(last, last + self._open_ms, self._values.add(held, value))
        return changed

    def begin(self, now: int) -> None:
        self._late_until = max(self._late_until, now - self._open_ms)

    def ended(self, window: OpenWindow) -> None:
        self._late_until = max(self._late_until, window.end + self._gap_ms)


class _Sliding(KeyWindows):
    """A window begins a size before each record, and right behind it: of those that hold something, each is told."""

    def __init__(self, values: PlainValues, grace_ms: int, kind: Sliding) -> None:
        super().__init__(values, grace_ms)
        self._size_ms = kind.size_ms
        self._starts: set[int] = set()
        self._taken: list[tuple[int, int, object]] = []

    def change(self, stamp: int, seen: int, value: object) -> Change | None:
        if stamp + self._size_ms + self._grace_ms < seen:
            return None
        taken = [*self._taken, (stamp, seen, value)]
        changed: dict[int, OpenWindow] = {}
        for start in self._starts | {stamp - self._size_ms, stamp + 1}:
            end = start + self._size_ms
            before = self.open.get(start)
            if end + self._grace_ms < seen or (before is not None and not start <= stamp <= end):
                continue
            held = None if before is None else before.value
            for at, then, each in taken[-1:] if before is not None else taken:
                if start <= at <= end and end + self._grace_ms >= then:
                    held = self._values.add(held, each)
            if held is not None:
                changed[start] = OpenWindow(end, end + self._grace_ms + 1, held)
        return changed

    def took(self, stamp: int, seen: int, value: object) -> None:
        lasts = self._size_ms + self._grace_ms
        self._starts |= {stamp - self._size_ms, stamp + 1}
        self._starts = {start for start in self._starts if start + lasts >= seen}
        self._taken = [each for each in (*self._taken, (stamp, seen, value)) if each[0] + lasts >= seen]


def windows_of_a_key(step: WindowAggregate) -> Callable[[], KeyWindows]:
    """Return what makes the windows of a key of which there are none."""
    values, grace_ms, kind = PlainValues(step), step.grace_ms, step.windows
    match kind:
        case Tumbling() | Hopping():
            return lambda: _Aligned(values, grace_ms, kind)
        case Session():
            return lambda: _Sessions(values, grace_ms, kind)
        case Sliding():
            return lambda: _Sliding(values, grace_ms, kind)
        case _:
            assert_never(kind)


def _spans(kind: Aligned) -> Callable[[int], Iterator[tuple[int, int]]]:
    """Return what yields the windows that a time is in, the last first: start and end."""
    return _unix_spans(kind) if kind.timezone is None else _local_spans(kind)


def _unix_spans(kind: Aligned) -> Callable[[int], Iterator[tuple[int, int]]]:
    def spans(stamp: int) -> Iterator[tuple[int, int]]:
        start = stamp - (stamp - kind.shift_ms) % kind.every_ms
        while stamp < start + kind.size_ms:
            yield start, start + kind.size_ms
            start -= kind.every_ms

    return spans


def _local_spans(kind: Aligned) -> Callable[[int], Iterator[tuple[int, int]]]:
    starts = starts_of(kind)

    def spans(stamp: int) -> Iterator[tuple[int, int]]:
        start = starts.latest(stamp)
        while stamp < (end := starts.end(start)):
            yield start, end
            start = starts.latest(start - 1)

    return spans
