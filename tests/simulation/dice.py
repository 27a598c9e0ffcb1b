"""Decides where faults strike, and keeps a list of those that did: so that any part of it can be played again.

Every decision has an occasion of its own: what may strike, where, and how often that might have been so before. What a
strike does in detail (how long, who) follows from seed and occasion alone. So a run is given by its seed; with a set of
occasions besides, the same run is played with those strikes only.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterable
from typing import NamedTuple
from zlib import crc32

_FORM = re.compile(r"(.+) @ (.+) #([1-9][0-9]*)")


class Strike(NamedTuple):
    """One fault that was applied: the `nth` occasion of this kind at this place."""

    kind: str
    where: str
    nth: int

    def __str__(self) -> str:
        return f"{self.kind} @ {self.where} #{self.nth}"

    @classmethod
    def parse(cls, text: str) -> Strike:
        match = _FORM.fullmatch(text)
        if match is None:
            raise ValueError(f"{text!r} is not 'kind @ place #number'")
        return cls(match[1], match[2], int(match[3]))


class Dice:
    """One run's dice. With `only`, nothing is thrown: exactly these strikes happen, where the run comes to them."""

    def __init__(self, seed: int, only: Iterable[Strike] | None = None) -> None:
        self.applied: list[Strike] = []
        self._seed = seed
        self._random = random.Random(f"dice-{seed}").random
        self._times = random.Random(f"times-{seed}").random
        self._only = None if only is None else frozenset(only)
        self._occasions: dict[tuple[str, str], int] = {}

    def throw(self, kind: str, where: str, rate: float) -> int:
        """Return 0, or for a strike a number that decides its details."""
        key = (kind, where)
        nth = self._occasions[key] = self._occasions.get(key, 0) + 1
        if self._only is None:
            return self._struck(Strike(kind, where, nth)) if rate > 0 and self._random() < rate else 0
        return self.throw_at(nth, kind, where, rate)

    def occasion(self, kind: str, where: str) -> int:
        """Count one more occasion; return the how many-th it is."""
        key = (kind, where)
        nth = self._occasions[key] = self._occasions.get(key, 0) + 1
        return nth

    def throw_at(self, nth: int, kind: str, where: str, rate: float) -> int:
        """As `throw`, for an occasion that is counted already."""
        if self._only is None:
            return self._struck(Strike(kind, where, nth)) if rate > 0 and self._random() < rate else 0
        strike = Strike(kind, where, nth)
        return self._struck(strike) if strike in self._only else 0

    def spares(self, rate: float) -> bool:
        """Whether none of what may strike with this rate, taken together, does; no replay of strikes may ask."""
        return rate <= 0 or self._random() >= rate

    def planned(self, kind: str, every_ms: int, until_ms: int) -> list[tuple[int, int]]:
        """Return (when, details) of what strikes the world again and again, `every_ms` on average; 0 for never."""
        plan: list[tuple[int, int]] = []
        if not every_ms:
            return plan
        at, nth = 0, 0
        while True:
            at += 1 + int(self._times() * 2 * every_ms)
            if at > until_ms:
                break
            nth += 1
            strike = Strike(kind, "world", nth)
            if self._only is None or strike in self._only:
                plan.append((at, self._struck(strike)))
        return plan

    def _struck(self, strike: Strike) -> int:
        self.applied.append(strike)
        return 1 + crc32(f"{self._seed} {strike}".encode())
