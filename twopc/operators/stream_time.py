"""The stream time of an operator under one partition number: the greatest timestamp that it has seen there."""

from __future__ import annotations

from twopc.operators.write_back_cache import KeyedStateStore
from twopc.state.layout import STREAM_TIME, StateName

_KEY = b""


class StreamTime:
    """None before the first record with a timestamp. Kept in the store, where it goes with the partition number."""

    def __init__(self, operator: str, partition: int, store: KeyedStateStore) -> None:
        self._state, self._partition, self._store = StateName(operator, STREAM_TIME), partition, store
        (stored,) = store.get_many(self._state, partition, [_KEY])
        self.now: int | None = None if stored is None else int(stored)
        self._written = self.now

    def write_back(self) -> None:
        """Bring the store up to it."""
        if self.now is not None and self.now != self._written:
            self._store.put_many(self._state, self._partition, [_KEY], [b"%d" % self.now])
            self._written = self.now
