"""The stream time of an operator under one partition number: the greatest timestamp that it has seen there.

And up to which time windows there are told, whatever the grace was.
"""

from __future__ import annotations

from twopc.operators.write_back_cache import KeyedStateStore
from twopc.state.layout import STREAM_TIME, TOLD, StateName

_KEY = b""


class StreamTime:
    """None before the first record with a timestamp. Kept in the store, where it goes with the partition number."""

    state = STREAM_TIME

    def __init__(self, operator: str, partition: int, store: KeyedStateStore) -> None:
        self._state, self._partition, self._store = StateName(operator, self.state), partition, store
        (stored,) = store.get_many(self._state, partition, [_KEY])
        self.now: int | None = None if stored is None else int(stored)
        self._written = self.now

    def write_back(self) -> None:
        """Bring the store up to it."""
        if self.now is not None and self.now != self._written:
            self._store.put_many(self._state, self._partition, [_KEY], [b"%d" % self.now])
            self._written = self.now


class ToldTime(StreamTime):
    """The greatest time, less the grace of then, that stream time has had: what was over by it, is told."""

    state = TOLD

    def reach(self, time: int | None, grace_ms: int) -> None:
        """Stream time has come here, and this is the grace."""
        if time is not None:
            self.now = time - grace_ms if self.now is None else max(self.now, time - grace_ms)
