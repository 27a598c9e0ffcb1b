"""The times that marks in a topic of the job's own have told, and how far they move the operators behind it.

Stream time there is that of the last mark; behind several such sources the least of theirs, once each has told one. So
records, which come there in any order of time, move none. What comes by another way moves none, either: marks tell of
that, too.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace

from twopc.operators.node import Node, marked_before, sources_with_marks
from twopc.operators.source_times import SourceTimes
from twopc.operators.stored_numbers import StreamTimes
from twopc.operators.timed_operators import TimedOperators
from twopc.operators.turn import Turn
from twopc.operators.write_back_cache import KeyedStateStore
from twopc.time_marks import without_own_times


class MarkedTimes:
    """Those of a subtask's sources that have marks, under each partition number."""

    def __init__(
        self, nodes: Sequence[Node], timed: TimedOperators, others: SourceTimes, store: KeyedStateStore
    ) -> None:
        """`others` has the times of sources that have no marks, and meet some that have."""
        self.sources, self.others = sources_with_marks(nodes), others
        moved = {key: marked_before(nodes, key) for key in timed.keys}
        self._moved = {key: before for key, before in moved.items() if before}
        self._times = StreamTimes(store)

    def read(self, turn: Turn) -> Turn:
        """Return a turn without the headers that tell time; where nothing here is moved by time, as it is."""
        self.others.begin()
        if not self._moved:
            return turn
        parts = ((key, without_own_times(batch) if key in self.sources else batch) for key, batch in turn.parts)
        return replace(turn, parts=tuple(parts))

    def reach(self, source: str, number: int, time: int) -> Iterator[tuple[str, int, int]]:
        """A mark tells this time; yield operator, number and time for each that it moves."""
        told = self._times.of(source, number)
        told.now = time if told.now is None else max(told.now, time)
        for operator, before in self._moved.items():
            if source in before and (least := self.least(before, number)) is not None:
                yield operator, number, least

    def least(self, sources: Collection[str], number: int) -> int | None:
        """Return the time behind these sources under a partition number; None until each has told one."""
        times = [self._times.of(source, number).now for source in sources]
        known = [time for time in times if time is not None]
        return min(known) if len(known) == len(times) else None

    def write_back(self) -> None:
        """Bring the store up to every mark so far."""
        self._times.write_back()
        self.others.write_back()
