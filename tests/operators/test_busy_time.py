"""The time of user functions is counted under the operator that they are of."""

from __future__ import annotations

from typing import Any

import pytest

from tests.operators.kit import Node, put_through
from tests.operators.test_process import rows
from twopc import Context, Processor, Record
from twopc.operators import Dataflow, Map, Process
from twopc.operators.busy_time import BusyTime
from twopc.processor import Produced
from twopc.testing.rows import batch_of
from twopc.testing.states import DictStore

now = 0.0


def taking(seconds: float) -> Any:
    def function(value: Any) -> Any:
        global now
        now += seconds
        if value == "bad":
            raise ValueError(value)
        return value

    return function


def flow_of(**steps: Any) -> Dataflow:
    """Return steps in a row, by their ids, whose time is that which functions take."""
    ids = ["in", *steps]
    inner = [Node(key, (before,), steps[key]) for before, key in zip(ids, steps, strict=False)]
    nodes = [Node("in"), *inner, Node("out", (ids[-1],))]
    return Dataflow(nodes, DictStore(), lambda source, error: (), [0], busy=BusyTime(lambda: now))


def test_each_operator_has_the_time_of_its_own_function() -> None:
    flow = flow_of(a=Map(taking(0.5)), b=Map(taking(0.125)), c=Map(str))
    put_through(flow, "in", batch_of(rows((None, 1, None), (None, 2, None))))
    put_through(flow, "in", batch_of(rows((None, 3, None))))
    assert flow.busy.milliseconds() == {"a": 1_500, "b": 375, "c": 0}


def test_a_record_on_which_it_raises_took_time_too() -> None:
    flow = flow_of(a=Map(taking(0.5)))
    put_through(flow, "in", batch_of(rows((None, 1, None), (None, "bad", None), (None, 2, None))))
    assert flow.busy.milliseconds() == {"a": 1_500}


class Slow(Processor):
    """Takes time for a record, and more when its timer fires."""

    def process(self, record: Record, context: Context) -> Produced:
        assert record.timestamp is not None
        context.set_timer(record.timestamp + 10)
        taking(0.25)(None)
        return None

    def on_timer(self, at: int, context: Context) -> Produced:
        taking(2.0)(None)
        return None


@pytest.mark.parametrize("how", ["by a record", "by a drain", "by the time of others"])
def test_what_passing_time_brings_up_counts_however_it_passes(how: str) -> None:
    flow = flow_of(op=Process(Slow(), "op"))
    put_through(flow, "in", batch_of(rows(("a", "x", 1))))
    assert flow.busy.milliseconds() == {"op": 250}
    match how:
        case "by a record":
            put_through(flow, "in", batch_of(rows(("b", "y", 100))))
            assert flow.busy.milliseconds() == {"op": 2_500}
        case "by a drain":
            flow.drain({"in"})
            assert flow.busy.milliseconds() == {"op": 2_250}
        case _:
            flow.follow_time([("op", 0, 100)])
            assert flow.busy.milliseconds() == {"op": 2_250}
