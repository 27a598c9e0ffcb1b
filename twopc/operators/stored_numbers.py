"""Numbers of an operator under one partition number, kept in the store, where they go with that partition number."""

from __future__ import annotations

from collections.abc import Sequence

from twopc.column_rows import partitions_of
from twopc.operators.write_back_cache import KeyedStateStore
from twopc.record import Batch
from twopc.state.layout import OPEN_WINDOWS, ROWS, STREAM_TIME, TOLD, StateName

_KEY = b""


class StoredNumber:
    """Read as it is opened, and written where it has changed; None where nothing was ever stored."""

    state: str

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


class StreamTime(StoredNumber):
    """The greatest timestamp that has been seen; None before the first record with one."""

    state = STREAM_TIME


class StreamTimes:
    """Those of several operators, each opened when it is first asked for."""

    def __init__(self, store: KeyedStateStore) -> None:
        self._store = store
        self._times: dict[tuple[str, int], StreamTime] = {}

    def of(self, operator: str, number: int) -> StreamTime:
        """Return that of an operator under a partition number."""
        if (operator, number) not in self._times:
            self._times[operator, number] = StreamTime(operator, number, self._store)
        return self._times[operator, number]

    def count(self, operator: str, batch: Batch, latest: int) -> dict[int, int]:
        """Let the records of a batch move that of an operator, none further than `latest`.

        Return the index of each that is behind it, and the time that it is behind.
        """
        behind: dict[int, int] = {}
        numbers = partitions_of(batch.rows)
        times = {number: self.of(operator, number) for number in set(numbers)}
        for index, (number, stamp) in enumerate(zip(numbers, batch.timestamps, strict=True)):
            if stamp is None or stamp > latest:
                continue
            time = times[number]
            if time.now is None or stamp >= time.now:
                time.now = stamp
            else:
                behind[index] = time.now
        return behind

    def write_back(self) -> None:
        """Bring the store up to every one of them."""
        for time in self._times.values():
            time.write_back()


class ToldTime(StoredNumber):
    """The greatest time, less the grace of then, that stream time has had: what was over by it, is told."""

    state = TOLD

    def reach(self, time: int | None, grace_ms: int) -> None:
        """Stream time has come here, and this is the grace."""
        if time is not None:
            self.now = time - grace_ms if self.now is None else max(self.now, time - grace_ms)


class StoredCount(StoredNumber):
    """How many there are: a figure, which no decision depends on.

    It stays unknown (None) where a checkpoint is older than it: that has some, and no number of them.
    """

    def begin(self) -> None:
        """There are none; that need not be written where nothing is."""
        self.now = 0
        self._written = self._written or 0

    def changed(self, by: int) -> None:
        """So many more are open; fewer, where it is negative."""
        if self.now is not None:
            self.now += by


def total(counts: Sequence[int | None]) -> int | None:
    """Return the sum of counts; None where one of them is not known."""
    known = [count for count in counts if count is not None]
    return sum(known) if len(known) == len(counts) else None


class OpenWindows(StoredCount):
    """How many windows are open."""

    state = OPEN_WINDOWS


class Rows(StoredCount):
    """How many rows a table has."""

    state = ROWS
