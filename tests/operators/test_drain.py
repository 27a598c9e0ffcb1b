"""What becomes at a drain of what waits for its time: it comes out, once, of every operator behind what is read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tests.operators.kit import Node, put_through
from tests.operators.test_process import rows
from tests.operators.window_kit import at
from twopc import Context, Hopping, Json, Processor, Record, Session, Sliding, Tumbling
from twopc.operators import Dataflow, Map, Process, WindowAggregate
from twopc.operators.window_step import Count, Reduce
from twopc.processor import Produced
from twopc.testing.rows import InputRow, batch_of
from twopc.testing.states import DictStore
from twopc.windows import Windows

TEN = Tumbling("10ms")


def counting(windows: Windows, name: str = "op") -> WindowAggregate:
    return WindowAggregate(windows, 0, Count(), name, Json())


def drained(nodes: Sequence[Node], every: Sequence[InputRow], *, twice: bool = False) -> list[Any]:
    """Return key and value of what a drain puts out at `out`, behind a source `in`."""
    store = DictStore()
    flow = Dataflow([Node("in"), *nodes], store, numbers=[0, 1])
    put_through(flow, "in", batch_of(every))
    flow.write_back()
    # What was restored is drained too, though no record of its numbers has come.
    flow = Dataflow([Node("in"), *nodes], store, numbers=[0, 1])
    outputs = flow.drain({"in"})
    if twice:
        outputs = flow.drain({"in"})
    return [pair for output in outputs for pair in zip(output.batch.keys, output.batch.values, strict=True)]


def told(of: Sequence[Any]) -> list[Any]:
    return [(key, window.start, window.end, window.value) for key, window in of]


def test_every_open_window_comes_out_whatever_its_kind() -> None:
    every = [*at(("a", 1), ("a", 12), ("b", 500)), *at(("c", 7), partition=1)]
    out = Node("out", ("op.final",))
    assert told(drained([Node("op", ("in",), counting(TEN)), out], every)) == [("b", 500, 510, 1), ("c", 0, 10, 1)]
    hopping = drained([Node("op", ("in",), counting(Hopping("10ms", every="5ms"))), out], every)
    assert told(hopping) == [("b", 495, 505, 1), ("b", 500, 510, 1), ("c", 0, 10, 1), ("c", 5, 15, 1)]
    sessions = drained([Node("op", ("in",), counting(Session(gap="10ms"))), out], every)
    assert told(sessions) == [("b", 500, 500, 1), ("c", 7, 7, 1)]
    sliding = drained([Node("op", ("in",), counting(Sliding("10ms"))), out], every)
    assert told(sliding) == [("b", 490, 500, 1), ("c", -3, 7, 1)]


def test_a_second_drain_puts_out_nothing() -> None:
    assert drained([Node("op", ("in",), counting(TEN)), Node("out", ("op.final",))], at(("a", 1)), twice=True) == []


def test_what_was_passed_over_is_reached_by_no_drain() -> None:
    nodes = [Node("in"), Node("op", ("in",), counting(TEN)), Node("out", ("op.final",))]
    flow = Dataflow(nodes, DictStore(), numbers=[0])
    put_through(flow, "in", batch_of(at(("a", 1))))
    flow.timed.pass_over({"in"})
    assert flow.drain({"in"}) == []


def test_windows_of_windows_come_out_too() -> None:
    nodes = [
        Node("op", ("in",), counting(TEN)),
        Node("sum", ("op.final",), WindowAggregate(TEN, 0, Reduce(lambda one, other: other), "sum", Json())),
        Node("out", ("sum.final",)),
    ]
    assert [(key, window.start) for key, window in drained(nodes, at(("a", 1), ("a", 12)))] == [("a", 0), ("a", 10)]


def test_records_for_windows_that_a_drain_has_closed_are_late() -> None:
    flow = Dataflow(
        [Node("in"), Node("op", ("in",), counting(TEN)), Node("late", ("op.late",))], DictStore(), numbers=[0]
    )
    put_through(flow, "in", batch_of(at(("a", 1))))
    flow.drain({"in"})
    assert [output.sink for output in put_through(flow, "in", batch_of(at(("a", 9))))] == ["late"]


def test_operators_behind_other_sources_too_wait_for_those() -> None:
    both = Node("both", ("in", "more"))
    merged = [Node("in"), Node("more"), both, Node("op", ("both",), counting(TEN)), Node("out", ("op.final",))]
    flow = Dataflow(merged, DictStore(), numbers=[0])
    put_through(flow, "in", batch_of(at(("a", 1))))
    assert flow.drain({"in"}) == []
    assert [output.sink for output in flow.drain({"in", "more"})] == ["out"]


class Reminding(Processor):
    """Sets a timer that sets the next one, for ever."""

    def process(self, record: Record, context: Context) -> Produced:
        assert record.timestamp is not None
        context.set_timer(record.timestamp + 10)
        context.set_timer(record.timestamp + 30)
        return None

    def on_timer(self, at: int, context: Context) -> Produced:
        context.set_timer(at + 100)
        assert (context.topic, context.offset) == ("", -1)
        return Record(context.key, (at, context.stream_time, context.partition))


def test_timers_that_there_are_fire_once_and_those_that_they_set_for_later_do_not() -> None:
    nodes = [Node("op", ("in",), Process(Reminding(), "op")), Node("out", ("op",))]
    out = drained(nodes, rows(("a", "x", 1), ("b", "y", 5)))
    assert out == [("a", (11, 35, 0)), ("b", (15, 35, 0)), ("a", (31, 35, 0)), ("b", (35, 35, 0))]


def test_a_job_without_anything_that_waits_puts_out_nothing() -> None:
    assert drained([Node("op", ("in",), Map(str)), Node("out", ("op",))], at(("a", 1))) == []


def test_late_records_and_stream_times_are_told_of_each_window() -> None:
    flow = Dataflow(
        [Node("in"), Node("op", ("in",), counting(TEN)), Node("out", ("op.final",))], DictStore(), numbers=[0]
    )
    assert (flow.timed.late(), flow.timed.stream_times()) == ({"op": 0}, {})
    put_through(flow, "in", batch_of(at(("a", 1), ("a", 25), ("a", 2), ("b", 3))))
    assert flow.timed.late() == {"op": 2}
    assert flow.timed.stream_times() == {("op", 0): 25}
