"""How far event time has come in what goes to topics of the job's own, and the marks that tell it there.

Before a topic each partition number has a time: the greatest timestamp of what was written from there. A record that is
behind that says so with itself. A number that is itself behind such topics has the time of the marks in those. What
comes by another way, and meets what is read there, has a time by its source (`operators.source_times`).

Each is told with a checkpoint; the time of all numbers comes back with a later trigger, and is written as a mark behind
all records up to that checkpoint, once by whoever reads the partition. Times go into the snapshots, so a restart goes
on with them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Self

from twopc.graph import JobDefinition
from twopc.operators import SinkOutput
from twopc.operators.marked_times import MarkedTimes
from twopc.operators.node import sending_sources
from twopc.operators.stored_numbers import StreamTimes
from twopc.operators.time_bound import Latest
from twopc.operators.write_back_cache import KeyedStateStore
from twopc.protocol.facts import SplitPosition
from twopc.protocol.followed_times import FollowedTime
from twopc.record import Batch
from twopc.time_marks import new_marks, with_own_times


class RepartitionTimes:
    """Of one subtask; used by the data loop alone."""

    def __init__(
        self,
        behind: Mapping[str, str],
        sources: Mapping[str, frozenset[str]],
        meeting: Mapping[str, frozenset[str]],
        marks: MarkedTimes,
        store: KeyedStateStore,
        latest: Latest,
    ) -> None:
        """`behind` has the source that reads what each sink writes there; `sources` those whose records come to it.

        `meeting` has those whose records meet the ones of such a source. No record moves time further than `latest`.
        """
        self.sources = {sink: sources[sink] & marks.sources or sources[sink] for sink in behind}
        self.meeting = {sink: meeting.get(source, frozenset()) for sink, source in behind.items()}
        self._source_behind, self._marks, self._latest = behind, marks, latest
        self._by_marks = {sink for sink, before in self.sources.items() if before <= marks.sources}
        self._times = StreamTimes(store)
        self._marked: dict[str, int] = {}

    @classmethod
    def of(cls, definition: JobDefinition, marks: MarkedTimes, store: KeyedStateStore, latest: Latest) -> Self:
        """Return those of a job."""
        behind = definition.marked_sinks
        before = {sink: sending_sources(definition.operators, sink) for sink in behind}
        return cls(behind, before, definition.met_by_marks, marks, store, latest)

    def sent(self, outputs: Sequence[SinkOutput]) -> Sequence[SinkOutput]:
        """These are written: return them with what their records tell of the time where they come from."""
        if not self.sources:
            return outputs
        return [
            SinkOutput(output.sink, self._sent(output)) if output.sink in self.sources else output for output in outputs
        ]

    def time(self, sink: str, number: int) -> int | None:
        """Return the time of what was written there from a partition number; None before any."""
        if sink in self._by_marks:
            return self._marks.least(self.sources[sink], number)
        return self._times.of(sink, number).now

    def time_of(self, source: str, number: int) -> int | None:
        """Return the time of a source that meets what is read there; None before any."""
        return self._marks.others.of(source, number)

    def never_rests(self, sink: str) -> bool:
        """Whether more may always come there, though nothing is to be read now: its inputs are such topics."""
        return sink in self._by_marks

    def new_marks(self, times: Sequence[FollowedTime], read: Sequence[SplitPosition]) -> list[SinkOutput]:
        """Return the marks that tell these times to the partitions that are read here, where no such were written."""
        marks = []
        for each in times:
            source, time = self._source_behind.get(each.operator), each.time
            if source is None or self._marked.get(each.operator, time - 1) >= time:
                continue
            self._marked[each.operator] = time
            if numbers := sorted(held.partition for held in read if held.source == source):
                marks.append(SinkOutput(each.operator, new_marks(numbers, time)))
        return marks

    def write_back(self) -> None:
        """Bring the store up to it."""
        self._times.write_back()

    def _sent(self, output: SinkOutput) -> Batch:
        sink, batch = output.sink, output.batch
        if sink in self._by_marks:
            own_time = self._marks.others.own_time
            told = {index: own for index, row in enumerate(batch.rows) if (own := own_time(row)) is not None}
            return with_own_times(batch, told) if told else batch
        late = self._times.count(sink, batch, self._latest())
        return with_own_times(batch, late) if late else batch
