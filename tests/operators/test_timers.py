"""Timers of a processor, by event time."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.operators.test_process import rows, values
from twopc import Context, Json, Processor, Record, UserCodeError, ValueState
from twopc.processor import Produced
from twopc.testing.states import DictStore


class Alarms(Processor):
    """Sets, deletes, and chains timers as the records say."""

    fired = ValueState(Json())

    def process(self, record: Record, context: Context) -> Produced:
        for kind, at in record.value:
            (context.set_timer if kind == "set" else context.delete_timer)(at)
        return record.replace(value=("record", context.key, context.stream_time))

    def on_timer(self, at: int, context: Context) -> Iterator[Record]:
        self.fired.set((self.fired.get() or 0) + 1)
        if at % 10 == 7:
            context.set_timer(at + 3)
        assert context.timestamp == at
        yield Record(context.key, (at, context.key, self.fired.get(), context.stream_time), timestamp=at)


def test_timers_fire_once_in_time_order_before_the_record_that_moves_time() -> None:
    out = values(
        Alarms(),
        rows(
            ("a", [("set", 30), ("set", 20), ("set", 30)], 1),
            ("b", [("set", 20), ("set", 25), ("delete", 25)], 2),
            ("c", [], 19),
            ("c", [], 100),
            ("c", [], 200),
        ),
    )
    assert out == [
        ("record", "a", 1),
        ("record", "b", 2),
        ("record", "c", 19),
        (20, "a", 1, 100),
        (20, "b", 1, 100),
        (30, "a", 2, 100),
        ("record", "c", 100),
        ("record", "c", 200),
    ]


def test_a_timer_for_a_time_that_has_come_fires_behind_the_record_and_timers_may_set_timers() -> None:
    assert values(Alarms(), rows((1, [("set", 17), ("set", 18)], 19), (1, [], 20))) == [
        ("record", 1, 19),
        (17, 1, 1, 19),
        (18, 1, 2, 19),
        (20, 1, 3, 20),
        ("record", 1, 20),
    ]


def test_a_timer_waits_for_the_time_of_its_own_partition_number() -> None:
    store = DictStore()
    values(Alarms(), rows((b"a", [("set", 5)], 1), partition=1), store)
    assert values(Alarms(), rows((b"a", [], 9), partition=0), store) == [("record", b"a", 9)]
    assert values(Alarms(), rows((b"a", [], 9), partition=1), store) == [(5, b"a", 1, 9), ("record", b"a", 9)]


def test_a_timer_without_a_time_of_the_stream_waits_for_it() -> None:
    assert values(Alarms(), rows((b"a", [("set", 5)], None), (b"a", [], 5))) == [
        ("record", b"a", None),
        (5, b"a", 1, 5),
        ("record", b"a", 5),
    ]


class Endless(Processor):
    def process(self, record: Record, context: Context) -> None:
        context.set_timer(record.value)

    def on_timer(self, at: int, context: Context) -> None:
        context.set_timer(at)


def test_a_timer_that_would_fire_for_ever_is_refused_with_the_record_that_moved_time() -> None:
    with pytest.raises(UserCodeError, match=r"in\[0\]@1: on_timer of process\(Endless, name='op'\) failed: .*for ever"):
        values(Endless(), rows((b"a", 3, 1), (b"a", 9, 5)))
