"""The partition numbers of a subtask that have no records just now, and the stream times that go on without them.

- At operators whose job says how long that may be (`idle=`), such a number follows the others. It is idle when nothing
  of its splits was read for so long, nothing of them waits to be processed, and, as far as is known, nothing is left to
  read: one that lags behind has records.
- At sinks that write to a topic of the job's own, one rests as soon as all that is there is read and processed. It is
  never moved here: what all subtasks tell is written there as a mark (`repartition_times`). So are the times of sources
  whose records meet what is read there.

It is looked at with each checkpoint, so a number counts as idle up to one interval later.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from twopc.clock import Clock
from twopc.operators.timed_operators import TimedOperators
from twopc.protocol.facts import SplitPosition
from twopc.protocol.followed_times import FollowedTime, NumberTimes
from twopc.runtime.repartition_times import RepartitionTimes

_Split = tuple[str, str]


class Reading(NamedTuple):
    """How far the splits of a subtask are read and processed, as far as it is known.

    `caught_up` has, of each source that knows it, the splits of which nothing is left to read just now; `over` are the
    sources of which nothing more will be read.
    """

    read: Iterable[SplitPosition]
    processed: Iterable[SplitPosition]
    lags: Mapping[_Split, int]
    caught_up: Mapping[str, frozenset[str]]
    over: Collection[str]


class _Seen(NamedTuple):
    number: int
    position: Any
    since: float
    """When it was seen to have records the last time, in monotonic seconds."""
    rests: bool


_IsIdle = Callable[[_Seen], bool]


def _never(seen: _Seen) -> bool:
    return False


def _rests(seen: _Seen) -> bool:
    return seen.rests


class IdleNumbers:
    """What is known of them; used by the data loop alone."""

    def __init__(self, timed: TimedOperators, clock: Clock, repartitions: RepartitionTimes | None = None) -> None:
        self._timed, self._clock, self._repartitions = timed, clock, repartitions
        self._idle_seconds = {key: idle_ms / 1_000 for key, idle_ms in timed.idle_ms().items()}
        self._seen: dict[_Split, _Seen] = {}
        self._over: Collection[str] = ()

    @property
    def counts(self) -> bool:
        """Whether anybody asks for it."""
        return bool(self._idle_seconds) or (self._repartitions is not None and bool(self._repartitions.sources))

    def look(self, reading: Reading) -> None:
        """Take in how far each split is."""
        now = self._clock.monotonic()
        through = {(held.source, held.split): held.position for held in reading.processed}
        self._over = reading.over
        for held in reading.read:
            split = (held.source, held.split)
            before = self._seen.get(split)
            through_all = held.position == through.get(split) and not reading.lags.get(split)
            stands = before is not None and through_all and before.position == held.position
            since = before.since if before is not None and stands else now
            caught_up = reading.caught_up.get(held.source)
            rests = stands if caught_up is None else through_all and held.split in caught_up
            self._seen[split] = _Seen(held.partition, held.position, since, rests)

    def times(self) -> tuple[NumberTimes, ...]:
        """Return the times of each operator here that has idle numbers, and of each topic of the job's own."""
        stream_times = self._timed.stream_times()
        told = [
            self._told(operator, self._timed.sources[operator], stream_times, partial(self._is_idle, seconds))
            for operator, seconds in self._idle_seconds.items()
        ]
        if self._repartitions is not None:
            for sink, sources in self._repartitions.sources.items():
                times = {(sink, number): self._repartitions.time(sink, number) for number in self._numbers(sources)}
                told.append(
                    self._told(sink, sources, times, _never if self._repartitions.never_rests(sink) else _rests)
                )
                for source in sorted(self._repartitions.meeting[sink]):
                    numbers = self._numbers({source})
                    met = {(sink, number): self._repartitions.time_of(source, number) for number in numbers}
                    told.append(self._told(sink, frozenset({source}), met, _rests))
        return tuple(told)

    def behind(self, followed: Sequence[FollowedTime]) -> list[tuple[str, int, int]]:
        """Return operator, number and time for each idle number whose time is behind that of the others."""
        times, to = self._timed.stream_times(), {each.operator: each.time for each in followed}
        return [
            (operator, number, time)
            for operator, seconds in self._idle_seconds.items()
            if (time := to.get(operator)) is not None
            for number, idle in self._numbers(self._timed.sources[operator], partial(self._is_idle, seconds)).items()
            if idle and times.get((operator, number), time - 1) < time
        ]

    def _told(
        self, operator: str, sources: frozenset[str], times: Mapping[tuple[str, int], int | None], is_idle: _IsIdle
    ) -> NumberTimes:
        every = [times.get((operator, number)) for number in self._numbers(sources)]
        numbers = self._numbers(sources.difference(self._over), is_idle)
        active = [times.get((operator, number)) for number, idle in numbers.items() if not idle]
        resting = [times.get((operator, number)) for number, idle in numbers.items() if idle]
        return NumberTimes(
            operator,
            least=_least(active),
            greatest=max((time for time in every if time is not None), default=None),
            holds=None in active,
            rests=bool(resting),
            resting=None if None in resting else _least(resting),
        )

    def _numbers(self, sources: Collection[str], is_idle: _IsIdle = _never) -> Mapping[int, bool]:
        """Return the numbers that these sources have here, and whether all splits of each are idle."""
        idle: dict[int, bool] = {}
        for (source, _), seen in self._seen.items():
            if source in sources:
                idle[seen.number] = idle.get(seen.number, True) and is_idle(seen)
        return idle

    def _is_idle(self, seconds: float, seen: _Seen) -> bool:
        return self._clock.monotonic() - seen.since >= seconds


def _least(times: Iterable[int | None]) -> int | None:
    return min((time for time in times if time is not None), default=None)
