"""Two streams joined by key and event time: who meets whom, who goes out alone and when, and what is kept."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.operators.kit import Cutting, Node, put_through
from twopc import Json, Serde
from twopc.operators import Dataflow, Turn
from twopc.operators.sink_output import OnError, SinkOutput, fail
from twopc.operators.stream_join_step import JoinStreams
from twopc.operators.time_queue import DUE_AT_ONCE
from twopc.record import RecordError
from twopc.state.layout import StateName
from twopc.testing.rows import InputRow, batch_of
from twopc.testing.states import DictStore

Given = tuple[str, Any, int | None]
"""Which side, the value, and its time."""


JSON = Json()


def pair(left: Any, right: Any) -> list[Any]:
    return [left, right]


def flow(
    store: DictStore,
    how: Any = "inner",
    grace: int = 0,
    function: Any = pair,
    on_error: OnError = fail,
    serde: Serde = JSON,
    numbers: Collection[int] = (),
) -> Dataflow:
    """Records of the left and the right within 10 ms of each other."""
    join = JoinStreams(function, how, 10, grace, "join", (serde, serde))
    return Dataflow(
        [Node("left"), Node("right"), Node("join", ("left", "right"), join), Node("out", ("join",))],
        store,
        on_error,
        numbers,
    )


def fed(dataflow: Dataflow, *given: Given, key: bytes = b"k") -> list[tuple[Any, int | None]]:
    """Return values and times of what comes out when these come one after the other."""
    found: list[tuple[Any, int | None]] = []
    for source, value, time in given:
        for output in put_through(dataflow, source, batch_of([InputRow(value, key_=key, timestamp_=time)])):
            assert set(output.batch.keys) == {key}
            found += zip(output.batch.values, output.batch.timestamps, strict=True)
    return found


def test_records_meet_that_are_near_in_time_whichever_comes_first() -> None:
    dataflow = flow(DictStore())
    given: Sequence[Given] = (("left", 1, 100), ("right", "a", 110), ("right", "b", 111), ("left", 2, 120))
    assert fed(dataflow, *given) == [([1, "a"], 110), ([2, "a"], 120), ([2, "b"], 120)]


def test_a_record_meets_several_in_the_order_of_their_times_and_of_one_time_in_that_in_which_they_came() -> None:
    given: Sequence[Given] = (("left", 1, 9), ("left", 2, 5), ("left", 3, 9), ("left", 4, 5), ("right", "a", 7))
    assert [value for value, _ in fed(flow(DictStore()), *given)] == [[2, "a"], [4, "a"], [1, "a"], [3, "a"]]


def test_each_pair_is_told_once() -> None:
    given: Sequence[Given] = (("left", 1, 5), ("left", 2, 6), ("right", "a", 7), ("right", "b", 8))
    assert [value for value, _ in fed(flow(DictStore()), *given)] == [[1, "a"], [2, "a"], [1, "b"], [2, "b"]]


def test_other_keys_and_other_partition_numbers_do_not_meet() -> None:
    dataflow = flow(DictStore())
    fed(dataflow, ("left", 1, 5))
    assert fed(dataflow, ("right", "a", 5), key=b"other") == []
    elsewhere = batch_of([InputRow("a", key_=b"k", timestamp_=5, partition_=1)])
    assert put_through(dataflow, "right", elsewhere) == []


@pytest.mark.parametrize(
    ("how", "alone"), [("inner", []), ("left", [([1, None], 5)]), ("outer", [([1, None], 5), ([None, "a"], 5)])]
)
def test_what_meets_nothing_goes_out_alone_when_its_time_is_past(how: str, alone: list[Any]) -> None:
    dataflow = flow(DictStore(), how)
    fed(dataflow, ("left", 1, 5))
    fed(dataflow, ("right", "a", 5), key=b"other")
    assert fed(dataflow, ("left", 2, 15), key=b"third") == []
    every = put_through(dataflow, "left", batch_of([InputRow(3, key_=b"third", timestamp_=16)]))
    assert [pair for out in every for pair in zip(out.batch.values, out.batch.timestamps, strict=True)] == alone


def test_what_met_something_does_not_go_out_alone() -> None:
    dataflow = flow(DictStore(), "outer")
    assert fed(dataflow, ("left", 1, 5), ("right", "a", 15)) == [([1, "a"], 15)]
    assert fed(dataflow, ("left", 2, 100)) == []
    assert fed(dataflow, ("left", 3, 200)) == [([2, None], 100)]


def test_the_grace_lets_late_records_meet() -> None:
    given: Sequence[Given] = (("left", 1, 5), ("left", 2, 30), ("right", "a", 6))
    assert fed(flow(DictStore(), "left"), *given) == [([1, None], 5)]
    assert fed(flow(DictStore(), "left", grace=20), *given) == [([1, "a"], 6)]


def test_what_comes_too_late_to_wait_meets_who_is_there_or_goes_out_alone_at_once() -> None:
    dataflow = flow(DictStore(), "left")
    fed(dataflow, ("right", "a", 20), ("right", "b", 30))
    assert fed(dataflow, ("left", 1, 9)) == [([1, None], 9)]
    dataflow = flow(DictStore(), "left", grace=5)
    fed(dataflow, ("right", "a", 20), ("right", "b", 30))
    assert fed(dataflow, ("left", 1, 14)) == [([1, "a"], 20)]


def test_nothing_is_kept_of_what_is_past() -> None:
    store = DictStore()
    dataflow = flow(store, "left")
    fed(dataflow, ("left", 1, 5), ("right", "a", 5), ("right", "b", 7))
    dataflow.write_back()
    waiting = [StateName("join", side) for side in ("left", "right")]
    assert [state for state, _, key in sorted(store.states) if key.startswith(b"k")] == waiting
    fed(dataflow, ("left", None, 100))
    dataflow.write_back()
    assert {state.name for state, _, _ in store.states} == {"$stream-time"}


def test_a_record_without_a_value_meets_nothing() -> None:
    assert fed(flow(DictStore(), "outer"), ("left", None, 5), ("right", "a", 5), ("right", None, 50)) == [
        ([None, "a"], 5)
    ]


def refusing() -> tuple[list[RecordError], OnError]:
    errors: list[RecordError] = []

    def refuse(source: str, error: RecordError) -> list[SinkOutput]:
        errors.append(error)
        return []

    return errors, refuse


def test_a_record_without_a_timestamp_is_refused_by_name() -> None:
    errors, on_error = refusing()
    assert fed(flow(DictStore(), on_error=on_error), ("left", 1, None), ("left", 2, 1), ("right", 3, 1)) == [
        ([2, 3], 1)
    ]
    assert "has no timestamp, and join(" in str(errors[0].cause)


def test_a_record_on_which_the_function_raises_leaves_no_trace() -> None:
    def picky(left: int, right: int) -> float:
        return left / right

    errors, on_error = refusing()
    dataflow = flow(DictStore(), "inner", 0, picky, on_error)
    assert fed(dataflow, ("left", 6, 1), ("right", 0, 2), ("left", 9, 2), ("right", 3, 3)) == [(2.0, 3), (3.0, 3)]
    assert len(errors) == 1


def test_one_that_fails_when_it_goes_out_alone_holds_up_no_other() -> None:
    def picky(left: int, right: int | None) -> float:
        return 1 / left

    errors, on_error = refusing()
    store = DictStore()
    dataflow = flow(store, "left", 0, picky, on_error)
    assert fed(dataflow, ("left", 0, 1), ("left", 1, 2), ("left", 2, 50)) == [(1.0, 2)]
    assert fed(dataflow, ("left", 4, 100)) == [(0.5, 50)]
    assert len(errors) == 1
    dataflow.write_back()
    assert [state.name for state, _, key in store.states if key.startswith(b"k")] == ["left"], "the next took it along"


def test_many_that_go_alone_at_one_record_let_a_checkpoint_in_between_and_go_once_each() -> None:
    store, serde, keys = DictStore(), Cutting(), 3 * DUE_AT_ONCE
    first = batch_of([InputRow("a", key_=b"%d" % number, timestamp_=5) for number in range(keys)])
    last = batch_of([InputRow("b", key_=b"b", timestamp_=at) for at in (16, 200)])
    serde.flow = flow(store, "left", serde=serde)
    put_through(serde.flow, "left", first)
    serde.flow.write_back()
    turns: list[list[Any]] = []
    while len(last):
        # As after a crash: what a checkpoint has seen is there, and the record that waited comes again.
        serde.flow = flow(store, "left", serde=serde)
        serde.flow.put(Turn.of("left", last))
        taken, outputs = serde.flow.advance()
        turns.append([key for output in outputs for key in output.batch.keys])
        serde.flow.write_back()
        last = last.behind(taken)
    assert sorted(key for turn in turns for key in turn) == sorted([b"b", *(b"%d" % number for number in range(keys))])
    assert max(map(len, turns)) <= DUE_AT_ONCE


def test_a_drain_lets_all_go_whatever_their_times() -> None:
    dataflow = flow(DictStore(), "left", numbers=(0,))
    fed(dataflow, ("left", 1, 5), ("right", "a", 6), ("left", 2, 8), ("left", 3, 17))
    every = dataflow.drain(("left", "right"))
    assert [value for output in every for value in output.batch.values] == [[3, None]]


times = st.integers(0, 60)
records = st.lists(st.tuples(st.sampled_from(["left", "right"]), times, st.sampled_from([b"k", b"l"])), max_size=25)


class Rule:
    """What a join makes, one record after the other, written down a second time."""

    def __init__(self, how: str) -> None:
        self.told = {"inner": (), "left": ("left",), "outer": ("left", "right")}[how]
        self.grace = 0
        self.now = -1
        self.made: list[tuple[Any, bytes]] = []
        self.waiting: list[dict[str, Any]] = []

    def take(self, side: str, value: int, at: int, key: bytes) -> None:
        self.now = max(self.now, at)
        past = [each for each in self.waiting if each["last"] < self.now]
        self.waiting = [each for each in self.waiting if each not in past]
        for each in sorted(past, key=lambda each: (each["last"], each["key"], each["side"], each["at"])):
            self._tell_alone(each)
        last = at + 10 + self.grace
        came = {"side": side, "value": value, "at": at, "last": last, "key": key, "met": False}
        for each in sorted(self.waiting, key=lambda each: each["at"]):
            if each["side"] != side and each["key"] == key and abs(each["at"] - at) <= 10:
                each["met"] = came["met"] = True
                both = (value, each["value"]) if side == "left" else (each["value"], value)
                self.made.append((list(both), key))
        if last >= self.now:
            self.waiting.append(came)
        else:
            self._tell_alone(came)

    def _tell_alone(self, each: dict[str, Any]) -> None:
        if not each["met"] and each["side"] in self.told:
            alone = [each["value"], None] if each["side"] == "left" else [None, each["value"]]
            self.made.append((alone, each["key"]))


@given(records, st.sampled_from(["inner", "left", "outer"]), st.data())
def test_a_join_makes_what_its_rule_says_through_restarts_with_another_grace_too(
    every: list[tuple[str, int, bytes]], how: str, data: st.DataObject
) -> None:
    store, rule = DictStore(), Rule(how)
    dataflow = flow(store, how, rule.grace)
    found: list[tuple[Any, bytes]] = []
    for value, (side, at, key) in enumerate([*every, ("left", 1_000, b"end")]):
        if data.draw(st.booleans()):
            dataflow.write_back()
            rule.grace = data.draw(st.integers(0, 15))
            dataflow = flow(store, how, rule.grace)
        for output in put_through(dataflow, side, batch_of([InputRow(value, key_=key, timestamp_=at)])):
            found += zip(output.batch.values, output.batch.keys, strict=True)
        rule.take(side, value, at, key)
        assert found == rule.made


def test_the_memory_of_what_waited_is_free_when_it_has_gone() -> None:
    dataflow = flow(DictStore(), "left")
    fed(dataflow, ("left", "long enough to be seen", 5), ("right", "a", 7), ("left", 1, 9))
    join: Any = dataflow._instances["join"]
    caches = [side.cache for side in join._sides]
    assert all(cache._size_bytes > 0 for cache in caches)
    fed(dataflow, ("left", None, 100))
    assert [cache._size_bytes for cache in caches] == [0, 0]
