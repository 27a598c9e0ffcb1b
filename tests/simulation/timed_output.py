"""The expected output of an operator of `tests.simulation.timed_job` under one partition number, without twopc.

The input is a list of events in their order: a record, or that all time has passed, as at a drain.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from tests.simulation.timed_job import (
    AT_ONCE_MS,
    CHAIN_MS,
    EVERY_MS,
    GAP_MS,
    GRACE_MS,
    HOP_MS,
    SIZE_MS,
    TTL_MS,
    WAIT_MS,
    put_together,
    timestamp,
    told,
)


class Came(NamedTuple):
    """A record came; `told` is the time that it tells itself, where marks move time."""

    key: bytes
    value: str
    told: int | None = None


class Marked(NamedTuple):
    """A mark tells this time."""

    time: int


class Drained(NamedTuple):
    """Time passed, until nothing waited for it."""


Event = Came | Drained | Marked

NEVER = -(2**63)
"""Before any time."""


@dataclass(slots=True)
class Operated(ABC):
    """The state of an operator under a number, and its output. `now` is None before the first record."""

    number: int
    now: int | None = None
    lines: list[str] = field(default_factory=list)
    by_marks: bool = False

    def after(self, events: Sequence[Event]) -> Operated:
        """Take these in, one after the other."""
        for event in events:
            match event:
                case Came():
                    self.came(event)
                case Drained():
                    self.drained()
                case Marked():
                    self.passed(event.time)
        return self

    def tell(self, key: bytes, at: int, stream: str, what: str) -> None:
        self.lines.append(told(self.number, key, at, stream, what))

    def moved(self, to: int) -> int:
        """Let the stream time reach this; return it."""
        self.now = to if self.now is None else max(self.now, to)
        return self.now

    def moved_by(self, record: Came, at: int) -> tuple[int, int]:
        """Return the stream time at which a record is seen, and that by which it may be late."""
        if not self.by_marks:
            now = self.moved(at)
            return now, now
        now = NEVER if self.now is None else self.now
        return now, max(now, NEVER if record.told is None else record.told)

    @property
    def told_up_to(self) -> int | None:
        """Up to which time windows are told; None where there are none."""
        return None

    @abstractmethod
    def passed(self, to: int) -> None:
        """Time has passed to there without a record."""

    @abstractmethod
    def came(self, record: Came) -> None: ...

    @abstractmethod
    def drained(self) -> None: ...

    @abstractmethod
    def states(self) -> dict[tuple[str, bytes], Any]:
        """Return what is stored by state and key; the open windows of a key are a list."""

    @abstractmethod
    def may_wait(self, entries: dict[bytes, set[int]]) -> bool:
        """Whether the time queue may be this: by key, at which times something is looked at."""


@dataclass(slots=True)
class Windowed(Operated):
    """Windows by key and start: the last millisecond or the last record of each, and what it comes to."""

    kind: str = ""
    name: str = ""
    open: dict[bytes, dict[int, tuple[int, Any]]] = field(default_factory=dict)
    ended: dict[bytes, int] = field(default_factory=dict)
    """The last record of the sessions that are over, as long as another may come within a gap of it."""

    @property
    def told_up_to(self) -> int | None:
        return None if self.now is None else self.now - GRACE_MS[self.kind]

    def came(self, record: Came) -> None:
        key, value, _ = record
        at = timestamp(value)
        now, late_by = self.moved_by(record, at)
        self._close(now)
        windows = self.open.setdefault(key, {})
        is_session = self.kind == "session"
        if is_session and not windows and now != NEVER:
            # What ended and is forgotten had ended by then.
            self.ended.setdefault(key, now - 2 * GAP_MS - GRACE_MS["session"] - 1)
        changed = self._session(key, at, late_by, value) if is_session else self._in(windows, at, late_by, value)
        for start in sorted(changed):
            self.tell(key, at, "current", self._shown(start, *windows[start]))
        if not changed:
            self.tell(key, at, "late", value)

    def passed(self, to: int) -> None:
        self._close(self.moved(to))

    def drained(self) -> None:
        closing = [self._closes(start, last) for each in self.open.values() for start, (last, _) in each.items()]
        if closing:
            self._close(self.moved(max(closing)))
        if self.ended:
            self._close(self.moved(max(map(_forgotten, self.ended.values()))))

    def states(self) -> dict[tuple[str, bytes], Any]:
        return {
            (self.name, key): [(start, self._end(start, last), held) for start, (last, held) in sorted(each.items())]
            for key, each in self.open.items()
            if each or key in self.ended
        }

    def may_wait(self, entries: dict[bytes, set[int]]) -> bool:
        """Who has open windows is looked at when the first of them closes, or before; all entries are to come."""
        first = {key: _forgotten(ended) for key, ended in self.ended.items()}
        first |= {
            key: min(self._closes(start, last) for start, (last, _) in each.items())
            for key, each in self.open.items()
            if each
        }
        behind = self.now is None or all(self.now < at for times in entries.values() for at in times)
        return behind and all(min(entries.get(key, {closes + 1})) <= closes for key, closes in first.items())

    def _in(self, windows: dict[int, tuple[int, Any]], at: int, now: int, value: str) -> list[int]:
        """Count a record in each window that its time is in, and that is not over; return their starts."""
        size, every = (SIZE_MS, SIZE_MS) if self.kind == "tumbling" else (HOP_MS, EVERY_MS)
        starts = [start for start in range(at - size + 1, at + 1) if start % every == 0]
        changed = [start for start in starts if start + size + GRACE_MS[self.kind] > now]
        for start in changed:
            _, held = windows.get(start, (0, None))
            windows[start] = start + size - 1, self._with(held, value)
        return changed

    def _session(self, key: bytes, at: int, now: int, value: str) -> list[int]:
        """Make one session of a record and all those that it is near to; return its start, if it is not late."""
        if key in self.ended and at <= self.ended[key] + GAP_MS:
            return []
        windows = self.open[key]
        near = [start for start, (last, _) in sorted(windows.items()) if start - GAP_MS <= at <= last + GAP_MS]
        if not near and at + GAP_MS + GRACE_MS["session"] < now:
            return []
        joined = [windows.pop(start) for start in near]
        held = None
        for _, each in joined:
            held = each if held is None else put_together(held, each)
        first, last = min([at, *near]), max([at, *(last for last, _ in joined)])
        windows[first] = last, self._with(held, value)
        return [first]

    def _with(self, held: Any, value: str) -> Any:
        if self.kind == "tumbling":
            return (held or 0) + 1
        return value if held is None else put_together(held, value)

    def _close(self, now: int) -> None:
        """Tell the windows that are over, by the times at which they are."""
        over = sorted(
            (self._closes(start, last), key, start)
            for key, each in self.open.items()
            for start, (last, _) in each.items()
            if self._closes(start, last) <= now
        )
        for _, key, start in over:
            last, held = self.open[key].pop(start)
            self.tell(key, last, "final", self._shown(start, last, held))
            if self.kind == "session":
                self.ended[key] = last
        for key, ended in list(self.ended.items()):
            if not self.open[key] and _forgotten(ended) <= now:
                del self.ended[key]

    def _closes(self, start: int, last: int) -> int:
        return last + 1 + GRACE_MS[self.kind] + (GAP_MS if self.kind == "session" else 0)

    def _end(self, start: int, last: int) -> int:
        return last if self.kind == "session" else last + 1

    def _shown(self, start: int, last: int, held: Any) -> str:
        return f"{start}-{self._end(start, last)}={held}"


def _forgotten(ended: int) -> int:
    """When a record within a gap of this end is late by itself."""
    return ended + 2 * GAP_MS + GRACE_MS["session"] + 1


@dataclass(slots=True)
class Reminded(Operated):
    """The output of `Reminders`, by key."""

    seen: dict[bytes, int] = field(default_factory=dict)
    fired: dict[bytes, int] = field(default_factory=dict)
    last: dict[bytes, tuple[int, int]] = field(default_factory=dict)
    """What was remembered, and at which stream time."""

    timers: set[tuple[int, bytes]] = field(default_factory=set)

    def came(self, record: Came) -> None:
        key, value, _ = record
        at = timestamp(value)
        now, _ = self.moved_by(record, at)
        seen_at = max(now, at)
        self._fire(now)
        self.seen[key] = seen = self.seen.get(key, 0) + 1
        remembered, written = self.last.get(key, (None, 0))
        before = None if written + TTL_MS <= seen_at else remembered
        self.last[key] = at + WAIT_MS, seen_at
        if seen % 3 == 0 and before is not None:
            self.timers.discard((before, key))
        self.timers.add((at + WAIT_MS, key))
        if seen % 4 == 0:
            self.timers.add((at - AT_ONCE_MS, key))
        self.tell(key, at, "timers", f"{before}/{seen}")
        self._fire(now)
        self._expire(now)

    def passed(self, to: int) -> None:
        now = self.moved(to)
        self._fire(now)
        self._expire(now)

    def drained(self) -> None:
        if self.timers:
            self.passed(max(self.timers)[0])

    def states(self) -> dict[tuple[str, bytes], Any]:
        named = (("seen", self.seen), ("fired", self.fired), ("last", self.last))
        return {(name, key): held for name, states in named for key, held in states.items()}

    def may_wait(self, entries: dict[bytes, set[int]]) -> bool:
        """The timers, and no others."""
        return {(at, key) for key, times in entries.items() for at in times} == self.timers

    def _expire(self, now: int) -> None:
        self.last = {key: each for key, each in self.last.items() if each[1] + TTL_MS > now}

    def _fire(self, now: int) -> None:
        while self.timers and min(self.timers)[0] <= now:
            at, key = min(self.timers)
            self.timers.remove((at, key))
            self.fired[key] = fired = self.fired.get(key, 0) + 1
            if fired % 2:
                self.timers.add((at + CHAIN_MS, key))
            self.tell(key, at, "timers", f"timer/{fired}")
