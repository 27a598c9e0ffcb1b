"""How much one writer may leave undelivered: as much as was delivered lately, in a quarter of a checkpoint's time-out.

A checkpoint waits until all that was written is delivered. A producer takes in more than a slow broker takes in that
time: the checkpoint is late then, and so is each one after it. Pure; times are monotonic seconds.

A broker with a quota lets eleven seconds of it through at once, and is silent then (KIP-124; quota.window.num): what it
took in fewer says nothing of what it will take.
"""

from __future__ import annotations

from collections import deque

SHARE = 4
"""The part of the time-out in which what is undelivered should be delivered, as far as the past shows."""

RATE_SECONDS = 20.0
"""The least time of which a rate is taken."""

LEAST, MOST = 64_000, 32_000_000
"""Bytes that may be undelivered, however little or much was delivered."""

MOST_HALVINGS = 6
BINS = 32
"""How finely the time is divided in which a delivery is one of lately."""

TELL_SECONDS = 60.0
"""A wait for a slow broker is told so often."""


class Backlog:
    """What a writer has given to its producers, one after the other, and what became of it.

    Bytes are those of the values; those on the wire are others, by keys and compression, in both directions alike.
    """

    def __init__(self, timeout_seconds: float) -> None:
        self._window = max(RATE_SECONDS, timeout_seconds / SHARE)
        self._share = min(1.0, timeout_seconds / SHARE / RATE_SECONDS)
        self._under_way: deque[tuple[int, int]] = deque()
        self._records = self._bytes = 0
        self._bins: deque[tuple[float, int]] = deque()
        self._lately = 0
        self._began: float | None = None
        self._halvings = 0
        self._throttled: tuple[str, float] | None = None
        self._told_at: float | None = None

    def took(self, records: int, size: int) -> None:
        """Note what was given to a producer."""
        self._under_way.append((records, size))
        self._records += records
        self._bytes += size

    def look(self, left: int, now: float) -> None:
        """Note how many of the records are neither delivered nor failed."""
        self._began = now if self._began is None else self._began
        while self._bins and self._bins[0][0] < now - self._window:
            self._lately -= self._bins.popleft()[1]
        if size := self._take(self._records - left):
            self._lately += size
            if self._bins and now - self._bins[-1][0] < self._window / BINS:
                at, before = self._bins.pop()
                self._bins.append((at, before + size))
            else:
                self._bins.append((now, size))

    def _take(self, records: int) -> int:
        """Take the oldest of what is under way out of it; return how many bytes these were."""
        taken = 0
        while records > 0 and self._under_way:
            count, size = self._under_way.popleft()
            if count > records:
                rest = size - size * records // count
                self._under_way.appendleft((count - records, rest))
                count, size = records, size - rest
            records -= count
            taken += size
            self._records -= count
        self._bytes -= taken
        return taken

    @property
    def limit(self) -> int:
        """How many bytes may be undelivered before more is written."""
        return int(max(LEAST, min(MOST, self._lately * self._share))) >> self._halvings

    @property
    def has_room(self) -> bool:
        return self._bytes <= self.limit

    def late(self) -> None:
        """A checkpoint has waited in vain for all to be delivered: half as much may be under way from now on."""
        self._halvings = min(MOST_HALVINGS, self._halvings + 1)

    def in_time(self) -> None:
        """All was delivered for a checkpoint."""
        self._halvings = max(0, self._halvings - 1)

    def throttled(self, broker: str, seconds: float) -> None:
        """A broker has told the client to pause for so long."""
        self._throttled = broker, seconds

    def is_to_tell(self, now: float) -> bool:
        """Whether a wait that lasts is to be told now; once it was, not soon again."""
        if self._told_at is not None and now - self._told_at < TELL_SECONDS:
            return False
        self._told_at = now
        return True

    def describe(self, now: float) -> str:
        """Return why it takes long: what is under way, how fast it goes, and who slows it down, if one said so."""
        seconds = max(1.0, min(self._window, now - (now if self._began is None else self._began)))
        rate = self._lately / seconds / 1_000
        standing = (
            f"{self._records} records ({self._bytes / 1_000:,.0f} kB) are under way, {rate:,.1f} kB/s arrived lately"
        )
        if self._throttled is None:
            return f"{standing}: is a broker slow, or overloaded?"
        broker, pause = self._throttled
        return (
            f"{standing}; broker {broker} throttles this client, by {pause:.1f} s when it last said so. That is a "
            "quota of its user or client id (producer_byte_rate; kafka-configs.sh --describe --entity-type users, "
            "clients)"
        )
