"""The pairs of numbers and changes under one partition number, by the definition of a left join of two streams."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

from tests.crash_cells.every_operator import PAIR_GRACE_MS, WITHIN_MS


@dataclass(slots=True)
class _Waiting:
    """One that may still meet another; `number` or `change` is what it is."""

    key: bytes
    at: int
    number: int | None
    change: int | None
    met: bool

    @property
    def until(self) -> int:
        return self.at + WITHIN_MS + PAIR_GRACE_MS + 1


@dataclass(slots=True)
class Pairs:
    """The waiting sides of a join, and its time; `tell` gets key and pair, with None for a change that never came."""

    tell: Callable[[bytes, list[int | None]], object]
    now: float = -math.inf
    waiting: list[_Waiting] = field(default_factory=list)

    def see_number(self, key: bytes, at: int, number: int) -> None:
        self._see(_Waiting(key, at, number, None, met=False))

    def see_change(self, key: bytes, at: int, change: int | None) -> None:
        """Take in a change; of one that deletes only its time counts."""
        self.let_pass(max(self.now, at))
        if change is not None:
            self._see(_Waiting(key, at, None, change, met=False))

    def let_pass(self, now: float) -> None:
        """Time reaches this: numbers that have waited for long enough are told alone."""
        self.now = max(self.now, now)
        over = [each for each in self.waiting if each.until <= self.now]
        self.waiting = [each for each in self.waiting if each.until > self.now]
        for each in sorted(over, key=lambda each: each.until):
            self._tell_alone(each)

    def _see(self, came: _Waiting) -> None:
        self.let_pass(max(self.now, came.at))
        for other in sorted(self.waiting, key=lambda each: each.at):
            is_other_side = (other.number is None) is not (came.number is None)
            if is_other_side and other.key == came.key and abs(other.at - came.at) <= WITHIN_MS:
                came.met = other.met = True
                number, change = (came.number, other.change) if other.number is None else (other.number, came.change)
                self.tell(came.key, [number, change])
        if came.until > self.now:
            self.waiting.append(came)
        else:
            self._tell_alone(came)

    def _tell_alone(self, each: _Waiting) -> None:
        if each.number is not None and not each.met:
            self.tell(each.key, [each.number, None])
