"""The number of the next element that is added to a list, of an operator under one partition number.

One element more needs nothing but its number: how many its list has, nobody asks.
"""

from __future__ import annotations

from twopc.operators.write_back_cache import KeyedStateStore
from twopc.state.layout import ELEMENTS, StateName

_KEY = b""


class ElementNumbers:
    """Ascending for ever. Kept in the store, where they go with the partition number."""

    def __init__(self, operator: str, partition: int, store: KeyedStateStore) -> None:
        self._state, self._partition, self._store = StateName(operator, ELEMENTS), partition, store
        (stored,) = store.get_many(self._state, partition, [_KEY])
        self._next = self._kept = self._written = 0 if stored is None else int(stored)

    def take(self) -> int:
        """Return a number that no element has had."""
        self._next += 1
        return self._next - 1

    def keep(self) -> None:
        """The function has returned: what it has taken is taken."""
        self._kept = self._next

    def drop(self) -> None:
        """The function has failed: it has taken none."""
        self._next = self._kept

    def write_back(self) -> None:
        """Bring the store up to it."""
        if self._kept != self._written:
            self._store.put_many(self._state, self._partition, [_KEY], [b"%d" % self._kept])
            self._written = self._kept
