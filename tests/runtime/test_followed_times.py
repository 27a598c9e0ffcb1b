"""Windows of a subtask whose partition number has no records, while a test tells it the time of others."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from tests.operators.kit import Node
from tests.runtime.kit import ScriptedReader, Stage, trigger
from twopc.clock import ManualClock
from twopc.operators import Dataflow, KeyedStateStore, Map, Peek, WindowAggregate
from twopc.operators.window_step import Count
from twopc.protocol.facts import SplitPosition
from twopc.protocol.followed_times import FollowedTime, NumberTimes
from twopc.protocol.messages import Ack
from twopc.record import Row
from twopc.serde import Json
from twopc.windows import Tumbling

HOUR_MS = 3_600_000
COUNT = WindowAggregate(Tumbling("1h"), 0, Count(), "count", Json())


def counting(step: WindowAggregate) -> Callable[[KeyedStateStore], Dataflow]:
    """Return what makes the graph of a subtask that owns number 0, whose sink takes final windows."""
    told = Node("told", ("count.final",), Map(lambda window: b"told"))
    nodes = [Node("in"), Node("count", ("in",), step), told, Node("out", ("told",))]
    return lambda store: Dataflow(nodes, store, numbers=[0])


def test_windows_of_a_number_without_records_are_told_with_the_checkpoint_behind_the_one_that_told_the_time(
    make: Callable[..., Stage],
) -> None:
    clock = ManualClock()
    stage = make([[b"a"]], clock=clock, flow=counting(replace(COUNT, idle_ms=30_000)))
    stage.steps(1)
    others = (FollowedTime("count", HOUR_MS),)
    trigger(stage, 1, times=others)
    stage.steps(1)
    assert stage.sink.written == 0
    assert stage.dataflow.timed.open_windows() == {"count": 1}
    clock.advance(30_000)
    trigger(stage, 2, times=others)
    stage.steps(1)
    assert (stage.sink.written, stage.sink.log[-1]) == (1, "begin")
    assert stage.dataflow.timed.open_windows() == {"count": 0}
    trigger(stage, 3)
    stage.steps(1)
    assert stage.sink.log[-2] == "pre-commit 3 told"
    assert [ack.times for ack in stage.sent(Ack)] == [
        (NumberTimes("count", 1, 1),),
        (NumberTimes("count", None, 1, rests=True, resting=1),),
        (NumberTimes("count", None, HOUR_MS, rests=True, resting=HOUR_MS),),
    ]


class TwoSplits(ScriptedReader):
    """All records are of the first; the other has none."""

    def positions(self, waiting: Iterable[Row] = ()) -> tuple[SplitPosition, ...]:
        return (*super().positions(waiting), SplitPosition("in[1]", 1, 0))


def test_time_passes_behind_the_records_that_a_cut_has_left_waiting(make: Callable[..., Stage]) -> None:
    clock = ManualClock()
    step = replace(COUNT, idle_ms=30_000)
    cutting = Node("cutting", ("in",), Peek(lambda value: stage.dataflow.cut()))
    counted = Node("count", ("cutting",), step)

    def flow(store: KeyedStateStore) -> Dataflow:
        told = Node("told", ("count.final",), Map(lambda window: b"told"))
        return Dataflow([Node("in"), cutting, counted, told, Node("out", ("told",))], store, numbers=[0, 1])

    stage = make([[b"a", b"b", b"c"]], clock=clock, flow=flow, reader=TwoSplits)
    trigger(stage, 1)
    stage.steps(1)
    assert stage.dataflow.waits
    clock.advance(30_000)
    trigger(stage, 2, times=(FollowedTime("count", HOUR_MS),))
    stage.steps(1)
    assert stage.dataflow.timed.stream_times() == {("count", 0): 1}
    stage.steps(2)
    assert stage.dataflow.timed.stream_times() == {("count", 0): 1, ("count", 1): HOUR_MS}


def test_windows_without_idle_ask_for_no_time_and_follow_none(make: Callable[..., Stage]) -> None:
    clock = ManualClock()
    stage = make([[b"a"]], clock=clock, flow=counting(COUNT))
    stage.steps(1)
    for number in (1, 2):
        trigger(stage, number, times=(FollowedTime("count", HOUR_MS),))
        stage.steps(1)
        clock.advance(30_000)
    assert (stage.sink.written, [ack.times for ack in stage.sent(Ack)]) == (0, [(), ()])
