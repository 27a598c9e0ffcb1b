"""The run-time of a job's operators: batches in at a source, batches out at the sinks, order kept on every path.

A record on which a user function raises is an error that names the record, the operator and the cause; what becomes of
it, `on_error` says: a record for a sink instead, nothing, or the end of the attempt, by what it raises. The records
before it and behind it go on. A record that a source could not decode is one, too, in its place among the others.

A batch that goes on in several directions is the same object in each: operators make new batches, and change none.

A batch can be cut between two of its records, on the way from its source up to and including the first operator that
keeps a state or makes several records of one, or after which the stream goes on in several directions: what is behind
the cut waits at that operator. Nothing that waits has changed a state or reached a sink, so whoever stores positions
stores those of the first rows that wait. Behind a branch nothing may wait: one direction would be ahead of the other.

Where ways of one source meet again, at a merge or in sinks with the same output, what comes on them waits until the
batch has gone all of them, and goes on in the order in which its source handed it over.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

from twopc.column import ColumnLoop, Over, named, span
from twopc.column_rows import places_of
from twopc.operators.broadcast import BroadcastTable
from twopc.operators.busy_time import BusyTime
from twopc.operators.instance import Instance, OperatorContext
from twopc.operators.marked_times import MarkedTimes
from twopc.operators.meeting import Order, in_order, order_of
from twopc.operators.node import Node, marked_before, sources_before
from twopc.operators.result import Result, Work
from twopc.operators.sink_output import OnError, SinkOutput, fail
from twopc.operators.source_times import SourceTimes
from twopc.operators.step import Step
from twopc.operators.stop import Stop, trunk
from twopc.operators.time_bound import Latest, unbounded
from twopc.operators.timed_operators import Passed, TimedOperators
from twopc.operators.turn import Turn
from twopc.operators.wiring import Crossing, Wiring
from twopc.operators.write_back_cache import KeyedStateStore
from twopc.port import Port
from twopc.record import Batch, ErrorStage, RecordError, Row
from twopc.state.layout import StateName
from twopc.time_marks import time_of


@dataclass(frozen=True, slots=True)
class _Wait:
    """Rows that wait before some stops; with an `error`, one row that was not decoded."""

    source: str
    stops: tuple[Stop, ...]
    rows: Sequence[Row]
    batch: Batch
    error: RecordError | None = None


class Dataflow:
    """The graph of one subtask, with the store that holds its keyed state. `nodes` stand in topological order."""

    def __init__(
        self,
        nodes: Sequence[Node],
        store: KeyedStateStore,
        on_error: OnError = fail,
        numbers: Collection[int] = (),
        tables: Mapping[str, BroadcastTable] | None = None,
        latest: Latest = unbounded,
        busy: BusyTime | None = None,
    ) -> None:
        """`numbers` are the partition numbers whose state is kept here, `tables` the broadcast tables of the job.

        `latest` says to which time records may move stream time; `busy` counts the time of each operator.
        """
        self._on_error, self._numbers = on_error, numbers
        self._failed = False
        self._instances: dict[str, Instance] = {}
        self._source_times = SourceTimes(store)
        with ExitStack() as closing:
            closing.callback(self.close)
            self._open(nodes, store, tables or {}, latest)
            closing.pop_all()
        origins = {key: sources_before(nodes, key) for key in self._instances}
        self.busy = busy or BusyTime()
        self.timed = TimedOperators(self._instances, origins, numbers, self.busy)
        self.marks = MarkedTimes(nodes, self.timed, self._source_times, store)
        self.mark: Row | None = None
        self._wiring = Wiring(nodes, self._instances, self.busy)
        self._cuttable = {source: frozenset(trunk(starts)) for source, starts in self._wiring.starts.items()}
        self._loop = ColumnLoop()
        self._source = ""
        self._turn: Turn | None = None
        self._source_by_input: dict[str, str] = {}
        self._is_several, self._gone = False, 0
        self._refused: list[tuple[int, SinkOutput]] = []
        self._cuttable_several: dict[frozenset[str], frozenset[Stop]] = {}
        self._waiting: list[_Wait] = []
        self._outputs: list[SinkOutput] = []
        self._at: tuple[Step, Batch] | None = None

    @property
    def waits(self) -> bool:
        """Whether there is something to `advance`."""
        return bool(self._waiting)

    @property
    def takes_several(self) -> bool:
        """Whether the records of several sources may go in one turn."""
        return self._wiring.crossings is not None

    def waiting_rows(self, source: str) -> Iterator[Row]:
        """Yield the rows of this source that were put in and have not come out, in their order."""
        if self._waiting and self._turn is not None and self._turn.order is not None:
            # What waits where sources meet is among them.
            yield from self._turn.rows_from(source, self._gone)
        elif source == self._source:
            for wait in reversed(self._waiting):
                yield from wait.rows

    def put(self, turn: Turn) -> None:
        """Let the records of a turn wait at the first operators; nothing else may wait."""
        assert not self.waits, "the order of records is kept"
        turn = self.marks.read(turn)
        self._turn, self._gone = turn, 0
        for self._source, batch in reversed(turn.parts):
            self._put(self._wiring.starts[self._source], batch)

    def _put(self, starts: tuple[Stop, ...], batch: Batch) -> None:
        behind = len(batch)
        for before, error in reversed(batch.errors):
            self._wait(starts, batch.part(before, behind))
            self._waiting.append(_Wait(self._source, (), [error.row], batch, error))
            behind = before
        self._wait(starts, batch.first(behind))

    def advance(self) -> tuple[int, list[SinkOutput]]:
        """Bring what waits first to the sinks, as far as nobody cuts it; return how many rows, and what came out."""
        self._outputs = []
        if self._turn is not None and self._turn.order is not None:
            return self._advance_several(self._turn, self._turn.order), self._outputs
        first = self._waiting.pop()
        waited = len(self._waiting)
        if first.error is not None and (time := time_of(first.error)) is not None:
            self.mark = first.error.row
            reached = self.marks.reach(first.source, self.mark.partition() or 0, time)
            self._take_passed(self.timed.follow(reached))
            self._source = first.source
        elif first.error is not None:
            self._refuse(first.error)
        else:
            self._follow(first.stops, first.batch, self._cuttable[self._source])
            self._meet(first.batch.rows)
        return len(first.rows) - sum(len(rest.rows) for rest in self._waiting[waited:]), self._outputs

    def _advance_several(self, turn: Turn, order: Order) -> int:
        """As `advance`, of a turn of several sources: no record goes on where they meet before all that precede it."""
        sources = frozenset(source for source, _ in turn.parts)
        if sources not in self._cuttable_several:
            self._cuttable_several[sources] = self._wiring.cuttable(sources)
        cuttable = self._cuttable_several[sources]
        self._is_several = True
        waiting, self._waiting = self._waiting, []
        while waiting and not self._waiting:
            first = waiting.pop()
            self._source = first.source
            if first.error is not None:
                self._refuse(first.error)
            else:
                self._follow(first.stops, first.batch, cuttable)
        self._waiting = [*waiting, *self._waiting]
        below = self._least(order)
        for crossing in self._wiring.crossings or ():
            if not crossing.meeting.is_empty:
                self._leave(crossing, order, below, cuttable)
        self._leave_to_sinks(order)
        self._is_several = False
        gone, self._gone = self._gone, int(min(self._least(order), len(order)))
        self._tell_refused()
        return self._gone - gone

    def _tell_refused(self) -> None:
        """Put out what is written instead of records that count as gone: the others would be read again."""
        refused, self._refused = sorted(self._refused, key=lambda each: each[0]), []
        for number, output in refused:
            if number < self._gone:
                self._outputs.append(output)
            else:
                self._refused.append((number, output))

    def _least(self, order: Order) -> float:
        """Return the number of the first record that waits."""
        numbers = (order[place] for wait in self._waiting for place in places_of(wait.rows))
        return min(numbers, default=math.inf)

    def _leave(self, crossing: Crossing, order: Order, below: float, cuttable: frozenset[Stop]) -> None:
        if not crossing.stops:
            self._follow(crossing.following, crossing.meeting.leave(order, below), cuttable)
            return
        made: defaultdict[str, list[Batch]] = defaultdict(list)
        for stop, part in crossing.leave(order, below):
            made[stop.id] += self._results(stop, part)
        for key, parts in made.items():
            batch = Batch.joined(parts)
            if crossing.keys_apart and len(parts) > 1:
                batch = in_order(batch, order)
            for behind in self._wiring.places[key].following:
                self._follow((behind,), batch, frozenset())

    def _results(self, stop: Stop, batch: Batch) -> Iterator[Batch]:
        """Yield what a step makes of a batch, without the records that go wrong."""
        assert stop.step is not None
        assert stop.operate is not None
        while len(batch):
            taken, output, cause, _ = self._apply(stop.step, stop.operate, batch, self._loop.whole)
            self._follow_sides(stop)
            yield output
            if cause is None:
                return
            self._refuse(RecordError(batch.rows[taken], ErrorStage.TRANSFORMATION, str(stop.step), cause))
            batch = batch.behind(taken + 1)

    def drain(self, sources: Collection[str]) -> list[SinkOutput]:
        """All of these sources is through: return what comes of what still waits for its time, behind no others.

        Once for each operator; nothing may wait in the graph.
        """
        return self._let_pass(self.timed.drain(sources))

    def pass_time(self, sources: Collection[str], to: int) -> list[SinkOutput]:
        """Let stream time reach this at the operators behind no other sources; return what comes of it."""
        return self._let_pass(self.timed.pass_time(sources, to))

    def follow_time(self, others: Iterable[tuple[str, int, int]]) -> list[SinkOutput]:
        """Let stream time reach this at these operators and partition numbers; return what comes of it."""
        return self._let_pass(self.timed.follow(others))

    def table_rows(self) -> Mapping[str, int]:
        """The number of rows of each table here, of those that know."""
        found = {key: instance.rows(self._numbers) for key, instance in self._instances.items()}
        return {key: rows for key, rows in found.items() if rows is not None}

    def refuse(self, error: RecordError) -> Iterable[SinkOutput]:
        """Return what is written in the place of a record that came out last and that a sink can't write."""
        return self._on_error(self._source_of(error.row), error)

    def _source_of(self, row: Row) -> str:
        if self._turn is None or self._turn.order is None:
            return self._source
        # Sources whose records go in one turn read no input in common.
        read = places_of([row])[0][0]
        if read not in self._source_by_input and (source := self._turn.source_of(read)) is not None:
            self._source_by_input[read] = source
        return self._source_by_input.get(read, self._source)

    def cut(self) -> None:
        """Let `advance` return soon, with what it has done until then. Another thread may call."""
        self._loop.cut()

    def place(self) -> str | None:
        """Return which record is in which step just now; None between two batches. Another thread may ask."""
        at, index = self._at, self._loop.index()
        for instance in self._instances.values():
            index = instance.index(index)
        if at is None:
            return None
        step, batch = at
        known = 0 <= index < len(batch)
        return f"{step} at {named(batch.rows[index]) if known else span(batch.rows)}"

    def write_back(self) -> None:
        """Bring the store up to every batch so far; a snapshot of it holds nothing else."""
        assert not self._failed, "a batch failed half-way, so the states of this attempt are of no use"
        for instance in self._instances.values():
            instance.write_back()
        self.marks.write_back()

    @property
    def concurrency(self) -> int:
        """How many records of a batch may be in user functions' hands at a time."""
        return max((instance.concurrency for instance in self._instances.values()), default=1)

    def _open(
        self, nodes: Sequence[Node], store: KeyedStateStore, tables: Mapping[str, BroadcastTable], latest: Latest
    ) -> None:
        steps: dict[str, Step] = {node.id: node.operation for node in nodes if isinstance(node.operation, Step)}
        sharers = sum(StateName(key, name).is_declared for key, step in steps.items() for name in step.states)
        used = {Port.parse(before) for node in nodes for before in node.inputs}
        for key, step in steps.items():
            outputs = {port.output for port in used if port.operator == key}
            by_marks, times, instances = bool(marked_before(nodes, key)), self._source_times, self._instances
            found = OperatorContext(key, store, sharers, outputs, latest, times, tables, instances, by_marks)
            self._instances[key] = step.open(found)

    def close(self) -> None:
        """End what user functions have in flight, and let them close what they have opened; nothing follows."""
        for instance in self._instances.values():
            instance.close()

    def _let_pass(self, passed: Passed) -> list[SinkOutput]:
        assert not self.waits, "what waits would come behind its time"
        self._turn, self._outputs = None, []
        self._take_passed(passed)
        return self._outputs

    def _take_passed(self, passed: Passed) -> None:
        for key, result in passed:
            stop, self._source = self._wiring.places[key], min(self.timed.sources[key])
            for error in result.lost:
                self._refuse(error)
            self._follow_sides(stop)
            for behind in stop.following:
                self._follow((behind,), result.batch, frozenset())
            self._meet(())

    def _follow_sides(self, stop: Stop) -> None:
        for name, side in stop.sides.items():
            for behind in side:
                self._follow((behind,), self._instances[stop.id].side_output(name), frozenset())

    def _meet(self, rows: Sequence[Row]) -> None:
        """Let go on what waits where ways of one source meet: all ways there have been gone for these rows."""
        met = [merge for merge in self._wiring.merges if not merge.meeting.is_empty]
        if met or any(not meeting.is_empty for meeting, _ in self._wiring.shared):
            order = order_of(rows)
            for merge in self._wiring.merges:
                if not merge.meeting.is_empty:
                    self._follow(merge.following, merge.meeting.leave(order), frozenset())
            self._leave_to_sinks(order)

    def _leave_to_sinks(self, order: Order) -> None:
        for meeting, sinks in self._wiring.shared:
            self._outputs += (SinkOutput(sinks[way], part) for way, part in meeting.leave_apart(order))

    def _follow(self, stops: tuple[Stop, ...], batch: Batch, cuttable: frozenset[Stop]) -> None:
        """Bring a batch through all that follows: along a row of steps in a loop, at a branch one way after another."""
        while len(stops) == 1 and len(batch):
            stop = stops[0]
            if stop.meeting is not None and (self._is_several or not stop.of_several):
                stop.meeting.arrive(stop.way, batch)
                return
            if stop.of_several and stop.step is None:
                stops = stop.following
                continue
            if stop.step is None or stop.operate is None:
                self._outputs.append(SinkOutput(stop.id, batch))
                return
            can_wait = stop in cuttable
            over = self._loop.until_cut if can_wait else self._loop.whole
            taken, output, cause, _ = self._apply(stop.step, stop.operate, batch, over)
            self._follow_sides(stop)
            if cause is not None:
                error = RecordError(batch.rows[taken], ErrorStage.TRANSFORMATION, str(stop.step), cause)
                batch = batch.behind(taken + 1)
                if not can_wait:
                    self._follow(stop.following, output, cuttable)
                    self._refuse(error)
                    continue
                self._wait((stop,), batch)
                # What is before it may be cut on its way, and then waits: this does so behind that.
                self._refuse_behind(taken, error)
            elif taken < len(batch):
                self._wait((stop,), batch.behind(taken))
            stops, batch = stop.following, output
        if len(batch):
            for stop in stops:
                self._follow((stop,), batch, frozenset())

    def _wait(self, stops: tuple[Stop, ...], batch: Batch) -> None:
        if len(batch):
            self._waiting.append(_Wait(self._source, stops, batch.rows, batch))

    def _refuse_behind(self, taken: int, error: RecordError) -> None:
        if taken:
            self._waiting.append(_Wait(self._source, (), [error.row], Batch([error.row], [None]), error))
        else:
            self._refuse(error)

    def _refuse(self, error: RecordError) -> None:
        self._failed = True
        outputs = self.refuse(error)
        if self._is_several and self._turn is not None and self._turn.order is not None:
            number = self._turn.order.get(places_of([error.row])[0], -1)
            self._refused += ((number, output) for output in outputs)
        else:
            self._outputs += outputs
        self._failed = False

    def _apply(self, step: Step, operate: Work, batch: Batch, over: Over) -> Result:
        self._at = step, batch
        try:
            result = operate(batch, over)
        finally:
            self._at = None
            self._loop.done()
        for error in result.lost:
            self._refuse(error)
        return result
