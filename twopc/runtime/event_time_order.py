"""Readers whose records meet by key, as one: under each partition number the earlier record goes first.

Kafka Streams' rule: where a partition has nothing at hand while others of its number have, it is waited for as long as
there is something to read, as far as is known, and `max_task_idle` longer; then the others go on without it.

Invariants:

- The records of one split keep their order. A time that is missing, or smaller than one before it there, counts as the
  greatest before it.
- A record that could not be decoded follows the one before it.
- A source of which much is held, HELD_MAX records or about HELD_BYTES_MAX, is read only where nothing is held; so
  memory is bounded, and nothing stands still. That is seldom: a client that is paused forgets what it has fetched. One
  whose reader can't choose is not read at all then, and where nothing else can be, nobody is waited for any longer.
"""

from __future__ import annotations

import math
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from twopc.clock import Clock
from twopc.column_rows import partitions_of, places_of
from twopc.graph import JobDefinition
from twopc.operators import Turn
from twopc.record import Batch, Row
from twopc.runtime.gathered import Gathered
from twopc.runtime.lanes import Held, Lane
from twopc.source import Source, SourceReader
from twopc.source_groups import event_times, source_groups
from twopc.termination import TERMINATION

HELD_MAX = 100_000
HELD_BYTES_MAX = 32_000_000


Place = tuple[str, int]
"""The input of a record, where its source reads several, and its partition number."""


class EventTimeOrder:
    """The readers of sources that meet, those first that are the earlier at equal times. Used by one thread."""

    def __init__(
        self,
        readers: Mapping[str, SourceReader],
        event_times: Mapping[str, Callable[[Any], Any]],
        max_idle_seconds: float,
        clock: Clock,
        input_of: Mapping[str, Callable[[str], str]] = MappingProxyType({}),
        *,
        together: bool = False,
    ) -> None:
        """`input_of` is there for each source that reads several inputs: the input that a split is a piece of.

        `together` says that records of several sources may go in one turn.
        """
        self.sources = tuple(readers)
        self._readers = dict(readers)
        self._event_times = event_times
        self._max_idle = max_idle_seconds
        self._clock = clock
        self._input_of = input_of
        self._together = together
        self._batches = 0
        self._records = dict.fromkeys(self.sources, 0)
        self._lanes = {source: dict(self._opened(source, reader)) for source, reader in readers.items()}
        self._numbers = deque(sorted({number for lanes in self._lanes.values() for _, number in lanes}))
        self._under = {
            number: [lane for lanes in self._lanes.values() for place, lane in lanes.items() if place[1] == number]
            for number in self._numbers
        }
        self._turns = deque(self.sources)
        self._silent: set[str] = set()
        self._caught_up: dict[str, frozenset[str]] = {}
        self._idle_since: dict[Lane, float] = {}
        self._paused = dict.fromkeys(self.sources, frozenset[str]())
        self._looked_at = clock.monotonic()

    def _opened(self, source: str, reader: SourceReader) -> Iterator[tuple[Place, Lane]]:
        input_of = self._input_of.get(source)
        for held in reader.positions():
            yield ("" if input_of is None else input_of(held.split), held.partition), Lane(source, held.split)

    def _places(self, source: str, rows: Sequence[Row]) -> list[Place]:
        if source in self._input_of:
            return [(read, number) for read, number, _ in places_of(rows)]
        return [("", number) for number in partitions_of(rows)]

    def held(self, source: str) -> int:
        """Return how many records of a source are held."""
        return sum(lane.size for lane in self._lanes[source].values())

    def first_rows(self, source: str) -> Iterator[Row]:
        """Yield the first row that is held of each split of a source."""
        return (lane.first_row() for lane in self._lanes[source].values() if lane.size)

    def poll(self, timeout: float, most: int, is_over: Callable[[str], bool]) -> Turn | None:
        """Return up to so many records whose turn it is; None after `timeout` seconds without any.

        `is_over` says of a source that nothing more of it will be read.
        """
        while True:
            if (ready := self._ready(most, is_over)) is not None:
                return ready
            hungry = [source for source in self._turns if not is_over(source) and self._wants(source)]
            if not hungry:
                return self._ready(most, lambda _: True)
            if not self._read(hungry, timeout, most):
                return self._ready(most, is_over)

    def _wants(self, source: str) -> bool:
        return any(not lane.size for lane in self._lanes[source].values()) and self._may_read(source)

    def _may_read(self, source: str) -> bool:
        """Pause the splits of which something is held, where that is much; return whether the others can be read."""
        held, paused = self.held(source), self._paused[source]
        is_full = held >= HELD_MAX or held * self._mean_bytes(source) >= HELD_BYTES_MAX
        if not is_full and not paused:
            return True
        full = frozenset(lane.split for lane in self._lanes[source].values() if lane.size)
        # One that was paused is read again when nothing of it is held: a client reads anew what it had fetched ahead.
        wanted = full if is_full else paused & full
        if wanted != paused and self._readers[source].pause(wanted):
            self._paused[source] = wanted
        return not is_full or self._paused[source] == full

    def _mean_bytes(self, source: str) -> float:
        """Return how many bytes the value of a record has on average; 0 where nobody counts."""
        return (self._readers[source].bytes_read() or 0) / max(self._records[source], 1)

    def _read(self, sources: Sequence[str], timeout: float, most: int) -> bool:
        """Hold what these sources have now; return whether that is anything."""
        found = False
        self._looked_at = self._clock.monotonic()
        for number, source in enumerate(sources, 1):
            wait = timeout if number == len(sources) and not found else 0.0
            batch = self._readers[source].poll(wait, most)
            if batch is None or not (len(batch) or batch.errors):
                self._silent.add(source)
                continue
            self._silent.discard(source)
            self._records[source] += len(batch) + len(batch.errors)
            self._hold(source, batch)
            found = True
        self._caught_up.clear()
        self._turns.rotate(-1)
        return found

    def _hold(self, source: str, batch: Batch) -> None:
        self._batches += 1
        held, times, start = Held(batch, self._batches), self._times(source, batch), 0
        for before, error in batch.errors:
            self._hold_rows(source, held, times, start, before)
            self._lanes[source][self._places(source, [error.row])[0]].hold_error(error, self._batches)
            start = before
        self._hold_rows(source, held, times, start, len(batch))

    def _hold_rows(self, source: str, held: Held, times: Sequence[float], start: int, stop: int) -> None:
        of: defaultdict[Place, list[int]] = defaultdict(list)
        for index, place in enumerate(self._places(source, held.batch.rows[start:stop]), start):
            of[place].append(index)
        for place, indices in of.items():
            lane = self._lanes[source][place]
            lane.hold(held, indices, [times[index] for index in indices])
            self._idle_since.pop(lane, None)

    def _times(self, source: str, batch: Batch) -> list[float]:
        function = self._event_times.get(source)
        times: list[float | None] = []
        if function is not None:
            times = [_extracted(function, value) for value in batch.values]
        if function is None or None in times:
            own = batch.timestamps
            times = [each if each is not None else stamp for each, stamp in zip(times or own, own, strict=True)]
        return [-math.inf if time is None else time for time in times]

    def _ready(self, most: int, is_over: Callable[[str], bool]) -> Turn | None:
        """Return what may go now, of all numbers; of one source, or of all where they may go together."""
        gathered = Gathered()
        for number in tuple(self._numbers):
            lanes = self._under[number]
            heads = [(lane.first, place) for place, lane in enumerate(lanes) if lane.size]
            waits = [lane for lane in lanes if not lane.size]
            if not heads or not all(is_over(lane.source) or self._is_idle(lane) for lane in waits):
                continue
            first = min(heads)[1]
            if lanes[first].begins_with_error:
                if gathered.size:
                    continue
                gathered.take(lanes, [first])
                break
            if self._together:
                gathered.take(lanes, _merged(lanes, most - gathered.size, is_over))
            elif gathered.source in (None, lanes[first].source):
                # A time is a whole number: of an earlier source those of the same time go before.
                until = min((time - (place < first) for time, place in heads if place != first), default=math.inf)
                gathered.take(lanes, [first] * len(lanes[first].times(until, most - gathered.size)))
            if gathered.size >= most:
                break
        self._numbers.rotate(-1)
        return gathered.turn()

    def _is_idle(self, lane: Lane) -> bool:
        """Whether there has been nothing to read of a split for so long that nobody waits for it."""
        source = lane.source
        if source not in self._caught_up:
            known = self._readers[source].caught_up()
            if known is None:
                known = frozenset(each.split for each in self._lanes[source].values() if source in self._silent)
            self._caught_up[source] = known
        if lane.split not in self._caught_up[source]:
            self._idle_since.pop(lane, None)
            return False
        # What came while nobody looked is no idleness: a function may take long, and a process may stand still.
        return self._looked_at - self._idle_since.setdefault(lane, self._looked_at) >= self._max_idle


def _merged(lanes: Sequence[Lane], most: int, is_over: Callable[[str], bool]) -> list[int]:
    """Return whose records go first of these lanes of one number, as the place of the lane for each of them.

    All go before which nothing can come.
    """
    bounds = [lane.bound(is_over(lane.source)) if lane.size else math.inf for lane in lanes]
    merged: list[tuple[float, int]] = []
    for place, lane in enumerate(lanes):
        until = min((bound - (at < place) for at, bound in enumerate(bounds) if at != place), default=math.inf)
        merged += ((time, place) for time in lane.times(until, most))
    merged.sort()
    return [place for _, place in merged[:most]]


def orders_of(
    definition: JobDefinition,
    readers: Mapping[str, SourceReader],
    max_idle_seconds: float,
    clock: Clock,
    *,
    together: bool = False,
) -> list[EventTimeOrder]:
    """Return what orders the records of a job's sources, one for those that meet in each place.

    A source alone has one only where two of its splits that are read here have one partition number. `together` says
    that the job's operators take the records of several sources in one turn.
    """
    times = event_times(definition)
    orders = []
    for met in source_groups(definition):
        several = {source: definition.sources[source].input_of for source in met if has_a_number_twice(readers[source])}
        if len(met) > 1 or several:
            here = {source: readers[source] for source in met}
            may = together and have_own_places(definition.sources[source] for source in met)
            orders.append(EventTimeOrder(here, times, max_idle_seconds, clock, several, together=may))
    return orders


def have_own_places(sources: Iterable[Source]) -> bool:
    """Whether no record of one of these sources can have the place of a record of another."""
    inputs = [source.inputs for source in sources]
    every = [name for some in inputs for name in some]
    return all(inputs) and len(set(every)) == len(every)


def has_a_number_twice(reader: SourceReader) -> bool:
    """Whether two splits of a source have one partition number: its own records meet there."""
    numbers = [held.partition for held in reader.positions()]
    return len(set(numbers)) < len(numbers)


def _extracted(function: Callable[[Any], Any], value: Any) -> float | None:
    """Return the time of a value, None for its record's own; a bad one is refused by the operator that assigns it."""
    if value is None:
        return None
    try:
        time = function(value)
    except TERMINATION:
        raise
    except BaseException:  # noqa: BLE001 - it is raised again where it has a record
        return -math.inf
    return time if time is None or type(time) is int else -math.inf
