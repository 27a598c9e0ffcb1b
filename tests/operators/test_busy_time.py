"""The time of user functions is counted under the operator that they are of."""

from __future__ import annotations

from typing import Any

import pytest

from tests.operators.kit import Node, put_through, row
from tests.operators.test_process import rows
from twopc import Context, Processor, Record
from twopc.operators import Dataflow, Map, Process
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


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("twopc.operators.busy_time.perf_counter", lambda: now)


def test_each_operator_has_the_time_of_its_own_function() -> None:
    flow = row([Map(taking(0.5)), Map(taking(0.125)), Map(str)], DictStore())
    put_through(flow, "in", batch_of(rows((None, 1, None), (None, 2, None))))
    put_through(flow, "in", batch_of(rows((None, 3, None))))
    assert flow.busy.milliseconds() == {"0": 1_500, "1": 375, "2": 0}


def test_a_record_on_which_it_raises_took_time_too() -> None:
    flow = row([Map(taking(0.5))], DictStore(), lambda source, error: ())
    put_through(flow, "in", batch_of(rows((None, 1, None), (None, "bad", None), (None, 2, None))))
    assert flow.busy.milliseconds() == {"0": 1_500}


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
    nodes = [Node("in"), Node("op", ("in",), Process(Slow(), "op")), Node("out", ("op",))]
    flow = Dataflow(nodes, DictStore(), numbers=[0])
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
