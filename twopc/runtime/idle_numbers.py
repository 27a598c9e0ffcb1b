"""The partition numbers of a subtask that have no records, at operators whose job says how long that may be (`idle=`).

A number is idle when nothing of its splits was read for so long, nothing of them waits to be processed, and, as far as
is known, nothing is left to read: one that lags behind has records. It is looked at with each checkpoint, so a number
counts as idle up to one interval later.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from twopc.clock import Clock
from twopc.operators.timed_operators import TimedOperators
from twopc.protocol.facts import SplitPosition
from twopc.protocol.followed_times import FollowedTime, NumberTimes

_Split = tuple[str, str]


class _Seen(NamedTuple):
    number: int
    position: Any
    since: float
    """When it was seen to have records the last time, in monotonic seconds."""


class IdleNumbers:
    """What is known of them; used by the data loop alone."""

    def __init__(self, timed: TimedOperators, clock: Clock) -> None:
        self._timed, self._clock = timed, clock
        self._idle_seconds = {key: idle_ms / 1_000 for key, idle_ms in timed.idle_ms().items()}
        self._seen: dict[_Split, _Seen] = {}

    @property
    def counts(self) -> bool:
        """Whether any operator asks for it."""
        return bool(self._idle_seconds)

    def look(
        self, read: Iterable[SplitPosition], processed: Iterable[SplitPosition], lags: Mapping[_Split, int]
    ) -> None:
        """Take in how far each split is read and processed, and its lag, as far as that is known."""
        now = self._clock.monotonic()
        through = {(held.source, held.split): held.position for held in processed}
        for held in read:
            split = (held.source, held.split)
            before = self._seen.get(split)
            rests = held.position == through.get(split) and not lags.get(split)
            if before is None or not rests or before.position != held.position:
                self._seen[split] = _Seen(held.partition, held.position, now)

    def times(self) -> tuple[NumberTimes, ...]:
        """Return the times of each operator here."""
        times, told = self._timed.stream_times(), []
        for operator, idle in self._numbers():
            active = [times.get((operator, number)) for number, rests in idle.items() if not rests]
            known = [times[operator, number] for number in idle if (operator, number) in times]
            least = min((time for time in active if time is not None), default=None)
            told.append(NumberTimes(operator, least, max(known, default=None), holds=None in active))
        return tuple(told)

    def behind(self, followed: Sequence[FollowedTime]) -> list[tuple[str, int, int]]:
        """Return operator, number and time for each idle number whose time is behind that of the others."""
        times, to = self._timed.stream_times(), {each.operator: each.time for each in followed}
        return [
            (operator, number, time)
            for operator, idle in self._numbers()
            if (time := to.get(operator)) is not None
            for number, rests in idle.items()
            if rests and times.get((operator, number), time - 1) < time
        ]

    def _numbers(self) -> Iterator[tuple[str, Mapping[int, bool]]]:
        """Yield each operator with its numbers here, and whether those are idle."""
        now = self._clock.monotonic()
        for operator, seconds in self._idle_seconds.items():
            idle: dict[int, bool] = {}
            for (source, _), seen in self._seen.items():
                if source in self._timed.sources[operator]:
                    idle[seen.number] = idle.get(seen.number, True) and now - seen.since >= seconds
            yield operator, idle
