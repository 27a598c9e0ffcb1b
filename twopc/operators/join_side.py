"""One side of a join of two streams: its records that wait for those of the other, by key, oldest first.

At hand and in the store they are one value by key. A join that writes a key again has looked at what it writes, and has
put out about as much of it.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from typing import Any

from twopc.operators.bound_state import decoded, encoded
from twopc.operators.instance import OperatorContext
from twopc.serde import Serde
from twopc.state.forms import all_waiting, joined_waiting

Held = tuple[int, int, bool, bytes]
"""A record that waits: since when, until when, whether it met another, and its value, encoded."""

HELD_BYTES = 200
"""About the bytes that one takes at hand, beside its value."""


class JoinSide:
    """The side of this name. A record of this attempt waits for `lasts_ms`, one of before as it was said then."""

    def __init__(self, name: str, serde: Serde, lasts_ms: int, context: OperatorContext) -> None:
        self._name, self._serde, self._lasts_ms = name, serde, lasts_ms
        self.wait_alike = True
        """Whether all that were read wait for as long as those of this attempt: then the oldest is the first to go."""
        self.cache = context.cache(name, self)

    def encoded(self, value: Any) -> bytes:
        """Return a value as it is held; raise ValueError for one that can't be."""
        data = encoded(self._name, self._serde, value)
        if data is None:
            raise ValueError(f"a value that waits is nothing to {self._serde}")
        return data

    def value(self, held: Held) -> Any:
        """Return the value of a record as the serde gives it back; raise ValueError where it can't be decoded."""
        return decoded(self._name, self._serde, held[3])

    def held(self, stored: list[bytes | None]) -> list[list[Held] | None]:
        found = [None if each is None else list(all_waiting(each)) for each in stored]
        lasts = self._lasts_ms
        if any(until - at != lasts for every in found if every for at, until, _, _ in every):
            self.wait_alike = False
        return found

    def stored(self, held: list[list[Held] | None]) -> list[bytes | None]:
        return [None if each is None else joined_waiting(each) for each in held]

    def size_bytes(self, held: Iterable[list[Held] | None]) -> int:
        return sum(HELD_BYTES + len(each[3]) for every in held if every is not None for each in every)


class WaitingRecords:
    """Those of one side under one partition number; `by_key` has them by the form of their key, as far as fetched."""

    def __init__(self, side: JoinSide, number: int) -> None:
        self.side, self._number = side, number
        self.by_key: dict[bytes, list[Held] | None]
        self._dirty: dict[bytes, list[Held] | None]
        self.by_key, self._dirty = side.cache.of(number)

    def add(self, form: bytes, came: Held) -> None:
        """Let one more wait, behind those of its time."""
        every = self.by_key.get(form)
        if every is None:
            every = []
            self.side.cache.begins(self._number, form)
        if every and every[-1][0] > came[0]:
            every.insert(bisect_left(every, (came[0] + 1,)), came)
        else:
            every.append(came)
        self.by_key[form] = self._dirty[form] = every
        self.side.cache.grew(HELD_BYTES + len(came[3]))

    def near(self, form: bytes, at: int, within_ms: int) -> tuple[int, list[Held]]:
        """Return those of a key whose times are at most so far from this one, and the place of the first."""
        every = self.by_key.get(form)
        if every is None:
            return 0, []
        start = bisect_left(every, (at - within_ms,))
        return start, every[start : bisect_left(every, (at + within_ms + 1,), start)]

    def met(self, form: bytes, start: int, some: list[Held]) -> None:
        """Those of a key that stand from a place on have met another."""
        every = self.by_key[form]
        assert every is not None
        for place, (at, until, has_met, data) in enumerate(some, start):
            if not has_met:
                every[place] = (at, until, True, data)
                self._dirty[form] = every

    def one_goes_by(self, form: bytes, until: int) -> bool:
        """Whether, of a key, some go at this time or before; False, too, where that is hard to tell."""
        every = self.by_key.get(form)
        return every is not None and every[0][1] <= until

    def leave(self, form: bytes, until: int) -> tuple[list[Held], int | None]:
        """Take out those that wait until this time or less; return them, and when the next of the key goes."""
        every = self.by_key.get(form)
        if every is None:
            return [], None
        if not self.side.wait_alike:
            # Those that go come first then, each kind in its order.
            every.sort(key=lambda each: each[1] > until)
        size = count = 0
        for each in every:
            if each[1] > until:
                break
            count += 1
            size += HELD_BYTES + len(each[3])
        gone = every[:count]
        if gone:
            del every[:count]
            self.side.cache.grew(-size)
            if every:
                self._dirty[form] = every
            else:
                self.side.cache.ends(self._number, form)
        if not every:
            return gone, None
        return gone, every[0][1] if self.side.wait_alike else min(each[1] for each in every)
