"""Entries by time, of one operator and partition number: timers, and what is to expire.

The store is the truth; the first entries are at hand, as many as memory may be used for, and are read when the first
is asked for.

Invariants:

- Every entry up to the horizon is at hand; behind it entries are in the store, or dirty: changed, and not yet written.
- `earliest` is never later than the first entry, so who compares it with the time at hand misses nothing.
- Memory is bounded by what is at hand, however often entries are added and removed: one that is moved leaves nothing.
- What is added and taken before it was written costs no call of the store.
"""

from __future__ import annotations

import math
import struct
from collections import deque
from collections.abc import Iterator
from heapq import heappop, heappush
from itertools import count, islice
from operator import length_hint
from typing import Any

from twopc.operators.write_back_cache import DIRTY_MAX, DIRTY_WHILE_FROZEN_MAX, KeyedStateStore
from twopc.state.layout import StateName

AT_HAND_MAX = 4_096

DUE_AT_ONCE = 1_000
"""The entries that are taken before it is asked whether a checkpoint waits."""

_TIME = struct.Struct(">Q")
_ZERO = 2**63
"""Times are stored so that their bytes have their order, negative ones too."""

TIMES = range(-(2**62), 2**62)
"""Those that an entry can have."""


def entry_of(at: int, due: bytes) -> bytes:
    """Return the key of an entry, as it is stored."""
    return _TIME.pack(at + _ZERO) + due


def parted_entry(entry: bytes) -> tuple[int, bytes]:
    """Return the time of an entry, and what is due."""
    at: int = _TIME.unpack_from(entry)[0] - _ZERO
    return at, entry[_TIME.size :]


class TimeQueue:
    """Sorted by time, then by what is due; each pair is there once, with what was kept of it when it was added last."""

    def __init__(self, state: StateName, partition: int, store: KeyedStateStore) -> None:
        self._state, self._partition, self._store = state, partition, store
        self.earliest = -math.inf
        self._heap: list[bytes] = []
        self._at_hand: dict[bytes, bytes] = {}
        self._horizon: bytes | None = b""
        self._dirty: dict[bytes, bytes | None] = {}
        self._new: dict[bytes, bytes] = {}
        """The dirty ones that the store is known to lack."""

    def add(self, at: int, due: bytes, kept: bytes = b"") -> None:
        """Add an entry, or keep something else of one that is there."""
        entry = entry_of(at, due)
        if self._horizon is not None and entry > self._horizon:
            self._change(entry, kept)
            return
        is_new = entry not in self._at_hand
        self._at_hand[entry] = kept
        if not is_new or entry in self._dirty:
            self._change(entry, kept)
        else:
            self._new[entry] = kept
        if is_new:
            heappush(self._heap, entry)
            self.earliest = min(self.earliest, at)
            if len(self._at_hand) > 2 * AT_HAND_MAX:
                self._keep_at_hand(sorted(self._at_hand.items())[:AT_HAND_MAX], is_all=False)

    def remove(self, at: int, due: bytes) -> None:
        """Remove an entry; that there is none is fine."""
        entry = entry_of(at, due)
        self._forget(entry)
        self._at_hand.pop(entry, None)
        if len(self._heap) > 2 * len(self._at_hand) + AT_HAND_MAX:
            self._heap = sorted(self._at_hand)

    def pop(self, until: int) -> tuple[int, bytes, bytes] | None:
        """Take the first entry, if its time is not after this one: its time, what is due, and what was kept of it."""
        while True:
            while self._heap:
                entry = self._heap[0]
                at, due = parted_entry(entry)
                self.earliest = at
                if at > until:
                    return None
                heappop(self._heap)
                # One that was removed is still in the heap.
                if (kept := self._at_hand.pop(entry, None)) is not None:
                    self._forget(entry)
                    return at, due, kept
            if self._horizon is None:
                self.earliest = math.inf
                return None
            self._read_more(self._horizon)

    def take_due(self, until: int, rest: Iterator[Any] | None) -> Iterator[tuple[int, bytes, bytes]]:
        """Yield what `pop` takes until this time: all, or what goes before the loop over records, `rest`, is cut.

        It is all once `earliest` is behind that time. Nobody cuts a loop of which something is still to come.
        """
        turn = count(1)
        while (due := self.pop(until)) is not None:
            yield due
            if rest is not None and next(turn) % DUE_AT_ONCE == 0 and length_hint(rest) == 0:
                return

    def latest(self) -> int | None:
        """Return the greatest time of an entry, None where there is none; reads all of them."""
        self.write_back()
        last = deque(self._store.scan(self._state, self._partition, b""), maxlen=1)
        return parted_entry(last[0][0])[0] if last else None

    def settle(self) -> None:
        """Between batches: write where much is dirty."""
        if len(self._dirty) + len(self._new) > (DIRTY_WHILE_FROZEN_MAX if self._store.frozen() else DIRTY_MAX):
            self.write_back()

    def write_back(self) -> None:
        """Write every change to the store; what the store refuses stays dirty."""
        dirty = self._dirty | self._new
        if dirty:
            entries = sorted(dirty)
            self._store.put_many(self._state, self._partition, entries, [dirty[entry] for entry in entries])
            self._dirty.clear()
            self._new.clear()

    def _change(self, entry: bytes, kept: bytes) -> None:
        changed: dict[bytes, Any] = self._new if entry in self._new else self._dirty
        changed[entry] = kept

    def _forget(self, entry: bytes) -> None:
        if self._new.pop(entry, None) is None:
            self._dirty[entry] = None

    def _read_more(self, horizon: bytes) -> None:
        self.write_back()
        # The smallest key behind the horizon: entries that were taken have left marks in RocksDB, and none is passed.
        start = horizon + b"\0" if horizon else b""
        entries = list(islice(self._store.scan(self._state, self._partition, start), AT_HAND_MAX))
        self._keep_at_hand(entries, is_all=len(entries) < AT_HAND_MAX)

    def _keep_at_hand(self, entries: list[tuple[bytes, bytes]], *, is_all: bool) -> None:
        self._at_hand = dict(entries)
        self._heap = list(self._at_hand)
        self._horizon = None if is_all else self._heap[-1]
