"""Windows that begin at multiples of a duration: what is in them, when they close, what is late."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.operators.kit import Cutting, put_through
from tests.operators.window_kit import WindowHarness, at
from twopc import (
    ConfigurationError,
    Hopping,
    Job,
    KafkaSink,
    KafkaSource,
    Session,
    String,
    Tumbling,
    UserCodeError,
    Window,
)
from twopc.operators import Dataflow
from twopc.operators.sink_output import SinkOutput
from twopc.operators.time_queue import DUE_AT_ONCE
from twopc.operators.turn import Turn
from twopc.operators.window_step import Aggregate, Collect, Reduce, Sum
from twopc.operators.windows import WindowOperator
from twopc.record import RecordError
from twopc.state.forms import ListOf, WindowsOf
from twopc.state.layout import OPEN_WINDOWS, StateName
from twopc.testing.rows import InputRow, batch_of
from twopc.testing.states import DictStore

TEN = Tumbling("10ms")


def values(*parts: tuple[Any, int, Any]) -> list[InputRow]:
    """Rows of key, timestamp and value."""
    return [
        InputRow(value, key_=key, partition_=0, offset_=offset, timestamp_=stamp)
        for offset, (key, stamp, value) in enumerate(parts)
    ]


def test_a_window_is_told_once_when_stream_time_reaches_its_end() -> None:
    told = WindowHarness(TEN).put(at(("a", 0), ("b", 3), ("a", 9), ("b", 10), ("b", 25)))
    assert told["final"] == [("a", 0, 10, 2), ("b", 0, 10, 1), ("b", 10, 20, 1)]


def test_a_window_stays_open_for_the_grace_behind_its_end() -> None:
    windowed = WindowHarness(TEN, grace_ms=5)
    assert "final" not in windowed.put(at(("a", 0), ("a", 14), ("a", 9)))
    assert windowed.put(at(("a", 15)))["final"] == [("a", 0, 10, 2)]


def test_a_record_whose_window_has_closed_is_late_and_comes_out_as_it_was() -> None:
    told = WindowHarness(TEN, grace_ms=5).put([*at(("a", 1), ("b", 15)), *at(("a", 9), value="left")])
    assert told["late"] == [("a", "left", 9)]
    assert told["final"] == [("a", 0, 10, 1)]


def test_every_change_is_told_with_the_time_of_its_record() -> None:
    windowed = WindowHarness(TEN)
    assert windowed.put(at(("a", 0), ("a", 11), ("b", 11)))["current"] == [
        ("a", 0, 10, 1),
        ("a", 10, 20, 1),
        ("b", 10, 20, 1),
    ]
    (output,) = (each for each in put_through(windowed.flow, "in", batch_of(at(("a", 13)))) if each.sink == "current")
    assert output.batch.timestamps == [13]


def test_the_timestamp_of_a_final_window_is_its_last_millisecond_and_it_has_no_headers() -> None:
    windowed = WindowHarness(TEN)
    outputs = put_through(windowed.flow, "in", batch_of(at(("a", 0), ("a", 30))))
    (final,) = (each.batch for each in outputs if each.sink == "final")
    assert (final.timestamps, final.headers) == ([9], [None])
    assert [row.offset() for row in final.rows] == [1]


def test_windows_that_close_at_once_come_in_the_order_of_their_ends() -> None:
    told = WindowHarness(TEN, grace_ms=100).put(at(("b", 21), ("a", 11), ("b", 1), ("c", 500)))
    assert told["final"] == [("b", 0, 10, 1), ("a", 10, 20, 1), ("b", 20, 30, 1)]


def test_a_record_is_in_every_hopping_window_around_it() -> None:
    told = WindowHarness(Hopping("10ms", every="5ms")).put(at(("a", 7), ("a", 12), ("a", 100)))
    assert told["current"][:4] == [("a", 0, 10, 1), ("a", 5, 15, 1), ("a", 5, 15, 2), ("a", 10, 20, 1)]
    assert told["final"] == [("a", 0, 10, 1), ("a", 5, 15, 2), ("a", 10, 20, 1)]


def test_a_record_is_in_no_hopping_window_that_ends_before_it() -> None:
    told = WindowHarness(Hopping("15ms", every="10ms"), grace_ms=20).put(at(("a", 12), ("a", 15), ("a", 19)))
    assert told["current"] == [("a", 0, 15, 1), ("a", 10, 25, 1), ("a", 10, 25, 2), ("a", 10, 25, 3)]


def test_a_record_for_which_some_hopping_windows_are_over_is_in_the_others_and_not_late() -> None:
    told = WindowHarness(Hopping("10ms", every="5ms")).put(at(("b", 12), ("a", 7), ("b", 100)))
    assert "late" not in told
    assert ("a", 5, 15, 1) in told["final"]
    assert ("a", 0, 10, 1) not in told["final"]


def test_partition_numbers_have_stream_times_of_their_own() -> None:
    told = WindowHarness(TEN).put([*at(("a", 100), partition=1), *at(("a", 3), partition=0)])
    assert told.keys() == {"current"}


def test_keys_come_back_as_they_were() -> None:
    keys: list[Any] = ["text", 1, True, {"b": 1, "a": [2]}]
    told = WindowHarness(TEN).put(at(*((key, 1) for key in keys), (0, 99)))
    assert sorted(repr(key) for key, *_ in told["final"]) == sorted(map(repr, keys))
    assert WindowHarness(TEN).put(at((b"\xffbytes", 1), (b"b", 99)))["final"] == [(b"\xffbytes", 0, 10, 1)]


def test_reduce_begins_with_the_first_value() -> None:
    windowed = WindowHarness(TEN, Reduce(max))
    assert windowed.put(values(("a", 1, 3), ("a", 2, 8), ("a", 3, 5), ("a", 99, 0)))["final"] == [("a", 0, 10, 8)]


def test_aggregate_begins_with_the_initial_value_of_every_window() -> None:
    def listed(so_far: list[int], value: int) -> list[int]:
        so_far.append(value)
        return so_far

    initials: list[Any] = [[], list]
    for initial in initials:
        windowed = WindowHarness(TEN, Aggregate(initial, listed))
        told = windowed.put(values(("a", 1, 3), ("a", 12, 8), ("b", 3, 5), ("a", 4, 4), ("a", 99, 0)), [1, 1])
        assert told["final"] == [("a", 0, 10, [3]), ("a", 10, 20, [8])]


def test_a_sum_is_exact_as_far_as_its_serde_goes_and_merges_sessions() -> None:
    told = WindowHarness(TEN, Sum()).put(values(("a", 1, 3), ("b", 2, 0.5), ("a", 9, -4), ("b", 3, 1), ("a", 99, 0)))
    assert told["final"] == [("a", 0, 10, -1), ("b", 0, 10, 1.5)]
    told = WindowHarness(Session("5ms"), Sum(), grace_ms=10).put(values(("a", 1, 3), ("a", 9, 4), ("a", 5, 2)))
    assert told["current"] == [("a", 1, 1, 3), ("a", 9, 9, 4), ("a", 1, 9, 9)]


@pytest.mark.parametrize("value", ["1", True, [1], None])
def test_what_is_no_number_is_not_added_up(value: Any) -> None:
    with pytest.raises(UserCodeError, match=r"sum adds numbers, and this is \w+: map values to numbers first"):
        WindowHarness(TEN, Sum()).put(values(("a", 1, 1), ("a", 2, value)))


def test_a_window_collects_its_values_in_the_order_in_which_they_came() -> None:
    collect: Any = {"aggregation": Collect(), "serde": ListOf(String())}
    told = WindowHarness(TEN, **collect).put(values(("a", 9, "x"), ("b", 2, "é"), ("a", 1, "y"), ("a", 99, "z")))
    assert told["final"] == [("a", 0, 10, ["x", "y"]), ("b", 0, 10, ["é"])]
    told = WindowHarness(Session("5ms"), grace_ms=10, **collect).put(
        values(("a", 9, "x"), ("a", 1, "y"), ("a", 5, "z"))
    )
    assert told["current"][-1] == ("a", 1, 9, ["y", "x", "z"])


def test_a_value_that_its_serde_can_not_write_is_not_collected() -> None:
    with pytest.raises(UserCodeError, match="can't be encoded by a list of String"):
        WindowHarness(TEN, Collect(), serde=ListOf(String())).put(values(("a", 1, "x"), ("a", 2, 3)))


def test_functions_see_a_value_as_its_serde_gives_it_back() -> None:
    seen = []

    def look(so_far: Any, value: Any) -> Any:
        seen.append(so_far)
        return (value,)

    WindowHarness(TEN, Aggregate((), look)).put(values(("a", 1, 3), ("a", 2, 4)))
    assert seen == [[], [3]]


def test_what_a_window_comes_to_is_encoded_by_its_serde() -> None:
    windowed = WindowHarness(TEN, Reduce(lambda so_far, value: so_far + value), serde=String())
    assert windowed.put(values(("a", 1, "x"), ("a", 2, "y")))["current"] == [("a", 0, 10, "x"), ("a", 0, 10, "xy")]


def test_a_record_on_which_the_function_raises_changes_nothing_and_those_around_it_go_on() -> None:
    errors: list[RecordError] = []

    def keep(source: str, error: RecordError) -> list[SinkOutput]:
        errors.append(error)
        return []

    windowed = WindowHarness(TEN, Reduce(lambda so_far, value: so_far + value), on_error=keep)
    told = windowed.put(values(("a", 1, 3), ("a", 9, "x"), ("a", 2, 4), ("b", 50, None), ("a", 3, 5)))
    assert told == {"current": [("a", 0, 10, 3), ("a", 0, 10, 7), ("a", 0, 10, 12)]}
    assert [error.row.offset() for error in errors] == [1, 3]


def test_a_record_without_a_timestamp_is_refused_by_name() -> None:
    with pytest.raises(UserCodeError, match=r"has no timestamp, and count\(.*timestamp= on the source"):
        WindowHarness(TEN).put(at(("a", None)))


def test_a_record_without_a_key_is_refused_by_name() -> None:
    with pytest.raises(UserCodeError, match="has no key"):
        WindowHarness(TEN).put(at((None, 1)))


def test_a_closed_window_leaves_no_state_but_the_stream_time() -> None:
    store = DictStore()
    windowed = WindowHarness(TEN, store=store)
    windowed.put(at(("a", 1), ("b", 2)))
    serde = WindowsOf(String())
    assert serde.deserialize(store.states[StateName("op", "op"), 0, b"a"]) == [Window(0, 10, "1")]
    windowed.put(at(("b", 99)))
    windowed.put(at(("b", 109)))
    assert {(state.name, key) for state, _, key in store.states} == {
        ("$stream-time", b""),
        ("$told", b""),
        ("$open-windows", b""),
        ("op", b"b"),
        ("$timers", (2**63 + 110).to_bytes(8) + b"b"),
    }


TIMES = st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 120)), max_size=40)


@given(TIMES, st.lists(st.integers(1, 9), max_size=12), st.sampled_from([TEN, Hopping("12ms", every="4ms")]))
def test_what_comes_out_does_not_depend_on_batches_nor_on_restarts(
    parts: list[tuple[str, int]], sizes: list[int], windows: Any
) -> None:
    rows = at(*parts)
    whole = WindowHarness(windows, grace_ms=7)
    expected = whole.put(rows)
    assert WindowHarness(windows, grace_ms=7).put(rows, sizes) == expected
    store = DictStore()
    told: dict[str, list[Any]] = {}
    for row in rows:
        for name, some in WindowHarness(windows, grace_ms=7, store=store).put([row]).items():
            told[name] = told.get(name, []) + some
    assert told == expected
    assert isinstance(whole.store, DictStore)
    assert store.states == whole.store.states


def test_how_many_windows_are_open_is_known_behind_a_restart_and_not_behind_a_checkpoint_of_before() -> None:
    store = DictStore()
    WindowHarness(TEN, store=store).put(at(("a", 5), ("b", 5), ("b", 11), ("c", 12)))
    operator = opened(store)
    assert [operator.open_windows(number) for number in (0, 1)] == [2, 0]
    operator.write_back()
    assert [place[1] for place in store.states if place[0].name == OPEN_WINDOWS] == [0]
    before = DictStore({place: data for place, data in store.states.items() if place[0].name != OPEN_WINDOWS})
    assert opened(before).open_windows(0) is None
    harness = WindowHarness(TEN, store=before)
    harness.put(at(("d", 13)))
    assert harness.flow.timed.open_windows() == {}


def opened(store: DictStore) -> WindowOperator:
    operator = WindowHarness(TEN, store=store).flow.timed._operators["op"]
    assert isinstance(operator, WindowOperator)
    return operator


def test_many_windows_that_close_at_one_record_are_told_at_once_where_nobody_waits() -> None:
    flow, keys = WindowHarness(TEN, outputs=["final"]).flow, 3 * DUE_AT_ONCE
    put_through(flow, "in", batch_of(at(*((f"key-{number}", 1) for number in range(keys)))))
    flow.put(Turn.of("in", batch_of(at(("a", 11)))))
    taken, outputs = flow.advance()
    assert (taken, sum(len(output.batch) for output in outputs)) == (1, keys)


def test_many_windows_that_close_at_one_record_let_a_checkpoint_in_between_and_are_told_once_each() -> None:
    store, serde, keys = DictStore(), Cutting(), 3 * DUE_AT_ONCE

    def harness() -> Dataflow:
        serde.flow = WindowHarness(TEN, Reduce(max), serde=serde, store=store, outputs=["final"]).flow
        return serde.flow

    put_through(harness(), "in", batch_of(at(*((f"key-{number}", 1) for number in range(keys)))))
    serde.flow.write_back()
    turns: list[list[Any]] = []
    last = batch_of(at(("a", 5), ("a", 11), ("a", 12)))
    while len(last):
        # As after a crash: what a checkpoint has seen is there, and the record that waited comes again.
        flow = harness()
        flow.put(Turn.of("in", last))
        taken, outputs = flow.advance()
        turns.append([key for output in outputs for key in output.batch.keys])
        flow.write_back()
        last = last.behind(taken)
    assert sorted(key for turn in turns for key in turn) == sorted(["a", *(f"key-{number}" for number in range(keys))])
    assert max(map(len, turns)) <= DUE_AT_ONCE


@given(TIMES)
def test_a_window_is_final_as_it_was_last_told(parts: list[tuple[str, int]]) -> None:
    told = WindowHarness(Hopping("12ms", every="4ms"), grace_ms=7).put(at(*parts, ("z", 10_000)))
    last = {(key, start): value for key, start, _, value in told.get("current", []) if key != "z"}
    assert {(key, start): value for key, start, _, value in told.get("final", [])} == last


def test_windows_that_make_no_sense_are_refused_by_name() -> None:
    with pytest.raises(ConfigurationError, match=r"the size of Tumbling\('0s'\) must be longer than nothing"):
        Tumbling("0s")
    with pytest.raises(ConfigurationError, match="write a number and its unit"):
        Tumbling(60)  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match="leaves gaps"):
        Hopping("1m", every="5m")
    stream = Job("windows").source(KafkaSource("in"))
    with pytest.raises(ConfigurationError, match=r'such as Tumbling\("1m"\), not \'1m\''):
        stream.window("1m")  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match="the grace of window"):
        stream.window(TEN, grace="soon")
    with pytest.raises(ConfigurationError, match="reduce needs a function"):
        stream.window(TEN).reduce(1, name="x")  # type: ignore[arg-type]


def test_windows_behind_a_change_of_the_key_are_refused() -> None:
    stream = Job("windows").source(KafkaSource("in")).map_records(lambda record: record)
    with pytest.raises(ConfigurationError, match=r"Put count before it"):
        stream.window(TEN).count(name="x")


def test_a_windowed_table_is_explained_with_its_windows() -> None:
    job = Job("windows")
    table = job.source(KafkaSource("in")).window(Hopping("5m", every="1m"), grace="10s").reduce(max, name="largest")
    text = table.final().sink(KafkaSink("out")).definition().describe()
    assert "reduce(max, Hopping('5m', every='1m'), grace=10000ms, name='largest')" in text
    assert "<- largest.final" in text


def test_open_windows_of_another_size_are_refused_by_name() -> None:
    store = DictStore()
    WindowHarness(TEN, store=store).put(at(("a", 1)))
    with pytest.raises(ConfigurationError, match="is still open from before, and is none of these"):
        WindowHarness(Tumbling("20ms"), store=store).put(at(("a", 2)))


@pytest.mark.parametrize("grace_ms", [0, 3, 9])
def test_a_grace_that_was_changed_holds_for_the_windows_that_are_open(grace_ms: int) -> None:
    store = DictStore()
    WindowHarness(TEN, grace_ms=5, store=store).put(at(("a", 1)))
    told = WindowHarness(TEN, grace_ms=grace_ms, store=store).put(at(("b", 100)))
    assert told["final"] == [("a", 0, 10, 1)]


def test_a_window_that_is_over_before_a_snapshot_is_taken_costs_no_write_and_one_that_was_written_is_deleted() -> None:
    windowed = WindowHarness(TEN, store=(store := DictStore()))
    windowed.put(at(("written", 1)))
    windowed.flow.write_back()
    windowed.put(at(("written", 11), ("over", 12), ("open", 21), ("over", 22), ("open", 31)))
    windowed.flow.write_back()
    changed = {key: value is not None for _, key, value in store.writes if key in (b"written", b"over", b"open")}
    assert changed == {b"written": False, b"open": True}
