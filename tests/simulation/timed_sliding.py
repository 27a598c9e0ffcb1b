"""The expected sliding windows under one partition number, from the records alone, without twopc.

A window begins where a record comes into one, and right behind it, if there are records behind; and has all of its
records that came before it was over.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import reduce
from typing import Any, NamedTuple

from tests.simulation.timed_job import GRACE_MS, SLIDE_MS, put_together, timestamp
from tests.simulation.timed_output import Came, Operated

_OPEN_MS = SLIDE_MS + GRACE_MS["sliding"] + 1
"""How long after its start a window is over."""


class Taken(NamedTuple):
    """A record that was not late, and the stream time when it came."""

    at: int
    seen: int
    value: str


@dataclass(slots=True)
class Slid(Operated):
    """The records of each key, and the windows that are told."""

    name: str = ""
    taken: dict[bytes, list[Taken]] = field(default_factory=lambda: defaultdict(list))

    @property
    def told_up_to(self) -> int | None:
        return None if self.now is None else self.now - GRACE_MS["sliding"]

    def came(self, record: Came) -> None:
        key, value, _ = record
        at = timestamp(value)
        if not self.by_marks:
            self.passed(at)
        _, now = self.moved_by(record, at)
        if at + _OPEN_MS <= now:
            self.tell(key, at, "late", value)
            return
        before = self._open(key)
        self.taken[key].append(Taken(at, now, value))
        for start, held in sorted(self._open(key).items()):
            if before.get(start) != held:
                self.tell(key, at, "current", self._shown(start, held))

    def drained(self) -> None:
        if waiting := [self._gone(key) for key in self._waiting()]:
            self.passed(max(waiting))

    def states(self) -> dict[tuple[str, bytes], Any]:
        return {
            (self.name, key): [(start, start + SLIDE_MS, held) for start, held in sorted(self._open(key).items())]
            for key in self._waiting()
        }

    def may_wait(self, entries: dict[bytes, set[int]]) -> bool:
        """Who has open windows, or what the next begin with, is looked at when the first is over, or before."""
        first = {
            key: min((start + _OPEN_MS for start in self._open(key)), default=self._gone(key))
            for key in self._waiting()
        }
        behind = self.now is None or all(self.now < at for times in entries.values() for at in times)
        return behind and all(min(entries.get(key, {over + 1})) <= over for key, over in first.items())

    def passed(self, to: int) -> None:
        windows = [(start, key, held) for key in list(self.taken) for start, held in self._open(key).items()]
        now = self.moved(to)
        for start, key, held in sorted(windows):
            if start + _OPEN_MS <= now:
                self.tell(key, start + SLIDE_MS, "final", self._shown(start, held))

    def _open(self, key: bytes) -> dict[int, str]:
        """Return what is in each window of a key that is not over."""
        now = self.now
        taken = self.taken[key]
        begun = {start for each in taken for start in (each.at - SLIDE_MS, each.at + 1) if start + _OPEN_MS > each.seen}
        held = {start: _put_together(each.value for each in taken if _is_in(each, start)) for start in begun}
        return {start: each for start, each in held.items() if each and (now is None or start + _OPEN_MS > now)}

    def _gone(self, key: bytes) -> int:
        """When nothing of a key is left: no window still to come has any of its records, or begins right behind one."""
        return max(each.at for each in self.taken[key]) + 1 + _OPEN_MS

    def _waiting(self) -> list[bytes]:
        return [key for key, taken in self.taken.items() if taken and (self.now is None or self._gone(key) > self.now)]

    def _shown(self, start: int, held: str) -> str:
        return f"{start}-{start + SLIDE_MS}={held}"


def _is_in(record: Taken, start: int) -> bool:
    return start <= record.at <= start + SLIDE_MS and start + _OPEN_MS > record.seen


def _put_together(values: Iterable[str]) -> str:
    every = list(values)
    return reduce(put_together, every) if every else ""
