"""The number of open windows of an operator under one partition number: a figure, which no decision depends on."""

from __future__ import annotations

from twopc.operators.write_back_cache import KeyedStateStore
from twopc.state.layout import OPEN_WINDOWS, StateName

_KEY = b""


class OpenWindows:
    """Kept in the store, where it goes with the partition number.

    It is not known (None) where a checkpoint is older than it: that has windows, and no number of them.
    """

    def __init__(self, operator: str, partition: int, store: KeyedStateStore, *, has_seen_records: bool) -> None:
        self._state, self._partition, self._store = StateName(operator, OPEN_WINDOWS), partition, store
        (stored,) = store.get_many(self._state, partition, [_KEY])
        self._written = int(stored) if stored is not None else None if has_seen_records else 0
        self._more = 0

    @property
    def number(self) -> int | None:
        return None if self._written is None else self._written + self._more

    def changed(self, by: int) -> None:
        """So many more are open; fewer, where it is negative."""
        self._more += by

    def write_back(self) -> None:
        """Bring the store up to it."""
        number = self.number
        if self._more and number is not None:
            self._store.put_many(self._state, self._partition, [_KEY], [b"%d" % number])
            self._written, self._more = number, 0
