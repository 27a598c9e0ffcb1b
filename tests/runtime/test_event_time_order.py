"""Which record goes first where sources meet by key, what waits for what, and what is held meanwhile."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, Protocol

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twopc.clock import ManualClock
from twopc.column_rows import places_of
from twopc.operators import Turn
from twopc.protocol.facts import SplitPosition
from twopc.protocol.ids import CheckpointId
from twopc.record import Batch, ErrorStage, RecordError, Row
from twopc.runtime.event_time_order import EventTimeOrder
from twopc.runtime.inputs import Inputs
from twopc.source import SourceReader
from twopc.testing.rows import InputRow


class Lines(SourceReader):
    """Hands over what it is given, in the order of its numbers; `there` is how many of each number can be read now."""

    def __init__(
        self, source: str, times: Mapping[int, Iterable[int | None]], *, tells: bool = True, pauses: bool = False
    ) -> None:
        self.rows = {
            number: [
                InputRow(f"{source}{number}.{at}", topic_=source, partition_=number, offset_=at, timestamp_=time)
                for at, time in enumerate(each)
            ]
            for number, each in times.items()
        }
        self.there = {number: len(rows) for number, rows in self.rows.items()}
        self.at = dict.fromkeys(self.rows, 0)
        self.tells, self.pauses = tells, pauses
        self.paused: frozenset[str] = frozenset()
        self.bad: set[str] = set()
        self.bounded = False

    def poll(self, timeout: float, most: int) -> Batch | None:
        found: list[InputRow] = []
        for number, rows in self.rows.items():
            if f"[{number}]" in self.paused:
                continue
            some = rows[self.at[number] : min(self.there[number], self.at[number] + most - len(found))]
            self.at[number] += len(some)
            found += some
        good: list[InputRow] = []
        errors: list[tuple[int, RecordError]] = []
        for row in found:
            if row.value() in self.bad:
                errors.append((len(good), RecordError(row, ErrorStage.VALUE_CONVERTER, "", ValueError())))
            else:
                good.append(row)
        return Batch(good, [row.value() for row in good], errors=errors) if found else None

    def caught_up(self) -> frozenset[str] | None:
        known = frozenset(f"[{number}]" for number, rows in self.rows.items() if self.at[number] >= len(rows))
        return known if self.tells else None

    def pause(self, splits: frozenset[str]) -> bool:
        self.paused = splits if self.pauses else frozenset()
        return self.pauses

    def positions(self, waiting: Iterable[Row] = ()) -> tuple[SplitPosition, ...]:
        at = dict(self.at)
        for row in waiting:
            at[row.partition() or 0] = min(at[row.partition() or 0], row.offset() or 0)
        return tuple(SplitPosition(f"[{number}]", number, where) for number, where in at.items())

    def bytes_read(self) -> int:
        return 50 * sum(self.at.values())

    def bound(self) -> bool:
        self.bounded = True
        return True

    def finished(self) -> bool:
        return self.bounded and all(self.at[number] == len(rows) for number, rows in self.rows.items())


class Ordered(Protocol):
    """Returns readers in the order of time: the records of one source in each turn, or those of several."""

    def __call__(
        self,
        readers: Mapping[str, Lines],
        idle_seconds: float = 0.0,
        clock: ManualClock | None = None,
        times: Mapping[str, Callable[[Any], Any]] | None = None,
    ) -> Inputs: ...


def in_order(
    readers: Mapping[str, Lines],
    idle_seconds: float = 0.0,
    clock: ManualClock | None = None,
    times: Mapping[str, Callable[[Any], Any]] | None = None,
    *,
    together: bool,
) -> Inputs:
    order = EventTimeOrder(readers, times or {}, idle_seconds, clock or ManualClock(), together=together)
    return Inputs(readers, orders=[order])


@pytest.fixture(params=[False, True], ids=["apart", "together"])
def ordered(request: pytest.FixtureRequest) -> Ordered:
    return partial(in_order, together=request.param)


def rows_of(turn: Turn) -> list[tuple[str, Row]]:
    """The records of a turn in their order, each as it is told."""
    found = [(str(value), row) for _, batch in turn.parts for value, row in zip(batch.values, batch.rows, strict=True)]
    if (order := turn.order) is not None:
        return sorted(found, key=lambda each: order[places_of([each[1]])[0]])
    every: list[tuple[str, Row]] = []
    for _, batch in turn.parts:
        errors = dict(batch.errors)
        for index in range(len(batch) + 1):
            every += [(f"bad {errors[index].row.value()}", errors[index].row)] if index in errors else []
            every += [(batch.values[index], batch.rows[index])] if index < len(batch) else []
    return every


def drained(inputs: Inputs, most: int = 100) -> list[str]:
    """Return all that comes until nothing does, as it stands in its number."""
    found: list[str] = []
    while (turn := inputs.poll(0.0, most)) is not None:
        found += [told for told, _ in rows_of(turn)]
    return found


def test_the_earlier_record_goes_first_whichever_topic_it_is_of(ordered: Ordered) -> None:
    inputs = ordered({"a": Lines("a", {0: [1, 4, 5, 9]}), "b": Lines("b", {0: [2, 3, 7]})})
    assert drained(inputs) == ["a0.0", "b0.0", "b0.1", "a0.1", "a0.2", "b0.2", "a0.3"]


def test_of_one_time_the_record_of_the_first_source_goes_first(ordered: Ordered) -> None:
    readers = {"table": Lines("t", {0: [1, 2, 2]}), "stream": Lines("s", {0: [0, 1, 2, 3]})}
    assert drained(ordered(readers)) == ["s0.0", "t0.0", "s0.1", "t0.1", "t0.2", "s0.2", "s0.3"]


def test_a_record_waits_where_the_first_source_may_have_more_of_its_time(ordered: Ordered) -> None:
    table = Lines("t", {0: [1, 5, 5, 6]})
    table.there[0] = 2
    inputs = ordered({"table": table, "stream": Lines("s", {0: [5, 9]})})
    assert drained(inputs) == ["t0.0", "t0.1"]
    table.there[0] = 4
    assert drained(inputs) == ["t0.2", "s0.0", "t0.3", "s0.1"]


def test_partitions_of_different_numbers_do_not_wait_for_each_other(ordered: Ordered) -> None:
    inputs = ordered({"a": Lines("a", {0: [50], 1: [1]}), "b": Lines("b", {0: [2], 1: [60]})})
    first = inputs.poll(0.0, 100)
    assert first is not None
    gone = [told for told, _ in rows_of(first)]
    assert {*gone} & {"b0.0", "a1.0"}
    assert [each for each in (*gone, *drained(inputs)) if each[1] == "0"] == ["b0.0", "a0.0"]


def test_the_times_of_a_topic_that_jump_back_or_are_missing_keep_its_order(ordered: Ordered) -> None:
    inputs = ordered({"a": Lines("a", {0: [5, 1, None, 6]}), "b": Lines("b", {0: [None, 5, 6]})})
    assert drained(inputs) == ["b0.0", "a0.0", "a0.1", "a0.2", "b0.1", "a0.3", "b0.2"]


def test_a_record_waits_for_a_topic_that_has_more_to_read(ordered: Ordered) -> None:
    late = Lines("b", {0: [1]})
    late.there[0] = 0
    inputs = ordered({"a": Lines("a", {0: [2]}), "b": late})
    assert inputs.poll(0.0, 100) is None
    assert [held.position for held in inputs.positions(lambda _: ())] == [0, 0]
    assert not inputs.at_end()
    late.there[0] = 1
    assert drained(inputs) == ["b0.0", "a0.0"]
    assert [held.position for held in inputs.positions(lambda _: ())] == [1, 1]


def test_nobody_waits_for_a_topic_that_is_read_to_its_end_unless_told_to(ordered: Ordered) -> None:
    clock = ManualClock()
    empty = Lines("b", {0: []})
    assert drained(ordered({"a": Lines("a", {0: [2]}), "b": Lines("b", {0: []})})) == ["a0.0"]
    inputs = ordered({"a": Lines("a", {0: [2]}), "b": empty}, 0.5, clock)
    assert drained(inputs) == []
    clock.advance(499)
    assert drained(inputs) == []
    clock.advance(1)
    assert drained(inputs) == ["a0.0"]


def test_the_wait_for_a_topic_begins_anew_when_it_had_a_record(ordered: Ordered) -> None:
    clock = ManualClock()
    late, other = Lines("b", {0: [1, 3]}), Lines("a", {0: [2, 4]})
    late.rows[0], rest = late.rows[0][:1], late.rows[0][1:]
    inputs = ordered({"a": other, "b": late}, 0.5, clock)
    assert drained(inputs) == ["b0.0"]
    clock.advance(400)
    late.rows[0] += rest
    late.there[0] = 2
    assert drained(inputs) == ["a0.0", "b0.1"]
    clock.advance(400)
    assert drained(inputs) == []
    clock.advance(100)
    assert drained(inputs) == ["a0.1"]


def test_a_topic_that_nobody_looked_into_meanwhile_was_not_idle(ordered: Ordered) -> None:
    clock = ManualClock()
    late = Lines("b", {0: [1, 3]}, tells=False)
    late.there[0] = 1
    inputs = ordered({"a": Lines("a", {0: [2, 4]}, tells=False), "b": late}, 0.5, clock)
    assert drained(inputs) == ["b0.0"]
    clock.advance(10_000)
    late.there[0] = 2
    assert drained(inputs) == ["a0.0", "b0.1"]


def test_the_wait_for_a_topic_begins_anew_when_it_had_something_to_read_though_no_record_came_of_it(
    ordered: Ordered,
) -> None:
    clock = ManualClock()
    aborted = Lines("b", {0: []})
    inputs = ordered({"a": Lines("a", {0: [2]}), "b": aborted}, 0.5, clock)
    assert drained(inputs) == []
    clock.advance(400)
    aborted.rows[0] = [InputRow("b0.0", partition_=0, offset_=0, timestamp_=1)]
    assert drained(inputs) == []
    clock.advance(400)
    aborted.rows[0] = []
    assert drained(inputs) == []
    clock.advance(500)
    assert drained(inputs) == ["a0.0"]


def test_nobody_waits_for_a_topic_whose_end_was_reached_in_a_bounded_read(ordered: Ordered) -> None:
    clock = ManualClock()
    inputs = ordered({"a": Lines("a", {0: [2]}), "b": Lines("b", {0: [1]})}, 60.0, clock)
    inputs.bound()
    assert drained(inputs) == ["b0.0", "a0.0"]
    assert (inputs.at_end(), inputs.finished()) == (True, True)


def test_what_is_held_is_not_the_end(ordered: Ordered) -> None:
    late = Lines("b", {0: [1]})
    late.there[0] = 0
    inputs = ordered({"a": Lines("a", {0: [2]}), "b": late})
    inputs.bound()
    assert inputs.poll(0.0, 100) is None
    assert (inputs.at_end(), inputs.finished()) == (False, False)


def test_of_a_source_that_does_not_tell_an_empty_poll_does(ordered: Ordered) -> None:
    readers = {"a": Lines("a", {0: [2]}, tells=False), "b": Lines("b", {0: []}, tells=False)}
    assert drained(ordered(readers)) == ["a0.0"]


def test_an_event_time_of_the_users_own_is_what_counts_and_one_that_fails_keeps_its_place(ordered: Ordered) -> None:
    times = {"a": {"a0.0": 7, "a0.1": 8, "a0.2": "late"}.__getitem__}
    readers = {"a": Lines("a", {0: [1, 1, 1, 1]}), "b": Lines("b", {0: [7, 8, 9]})}
    assert drained(ordered(readers, times=times)) == ["a0.0", "b0.0", "a0.1", "a0.2", "a0.3", "b0.1", "b0.2"]


def test_a_record_for_which_the_users_function_has_no_time_is_ordered_by_its_own(ordered: Ordered) -> None:
    times = {"a": {"a0.0": 7, "a0.1": None}.__getitem__}
    readers = {"a": Lines("a", {0: [1, 9]}), "b": Lines("b", {0: [8, 10]})}
    assert drained(ordered(readers, times=times)) == ["a0.0", "b0.0", "a0.1", "b0.1"]


def test_a_record_that_was_not_decoded_follows_the_one_before_it(ordered: Ordered) -> None:
    a = Lines("a", {0: [1, 2, 6, 7]})
    a.bad = {"a0.0", "a0.2"}
    inputs = ordered({"a": a, "b": Lines("b", {0: [3, 9]})})
    assert drained(inputs) == ["bad a0.0", "a0.1", "bad a0.2", "b0.0", "a0.3", "b0.1"]


def test_a_batch_is_as_large_as_it_may_be(ordered: Ordered) -> None:
    inputs = ordered({"a": Lines("a", {0: [1] * 7, 1: [1] * 7}), "b": Lines("b", {0: [], 1: []})})
    sizes = []
    while (turn := inputs.poll(0.0, 5)) is not None:
        sizes.append(len(rows_of(turn)))
    assert max(sizes) == 5
    assert sum(sizes) == 14


@pytest.mark.parametrize(("limit", "most_held"), [("HELD_MAX", 10_000), ("HELD_BYTES_MAX", 500_000)])
def test_where_nothing_else_can_be_read_nobody_waits_any_longer(
    ordered: Ordered, monkeypatch: pytest.MonkeyPatch, limit: str, most_held: int
) -> None:
    monkeypatch.setattr(f"twopc.runtime.event_time_order.{limit}", most_held)
    late = Lines("b", {0: [1], 1: [1] * 30_000})
    late.there = {0: 0, 1: 30_000}
    other = Lines("a", {0: [2] * 30_000, 1: [1]})
    other.there = {0: 30_000, 1: 0}
    inputs = ordered({"a": other, "b": late})
    most = 0
    for _ in range(30):
        inputs.poll(0.0, 1_000)
        held = sum(map(inputs._held, "ab"))
        most = max(most, held)
    assert most <= 22_000
    assert other.at[0] > 10_000


def test_records_go_in_the_order_of_their_times_though_topics_are_read_in_long_runs_of_different_partitions(
    ordered: Ordered, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("twopc.runtime.event_time_order.HELD_MAX", 10_000)
    early, late = [n // 200 * 2 for n in range(30_000)], [n // 200 * 2 + 1 for n in range(30_000)]
    a = Lines("a", {0: early, 1: early}, pauses=True)
    b = Lines("b", {1: late, 0: late}, pauses=True)
    inputs = ordered({"a": a, "b": b})
    gone: dict[int, list[int]] = {0: [], 1: []}
    held = 0
    while (turn := inputs.poll(0.0, 1_000)) is not None:
        for _, row in rows_of(turn):
            gone[row.partition() or 0].append(row.timestamp()[1])
        held = max(held, sum(inputs._held(source) for source in "ab"))
    assert [len(times) for times in gone.values()] == [60_000, 60_000]
    assert all(times == sorted(times) for times in gone.values())
    assert held <= 22_000
    assert (a.paused, b.paused) == (frozenset(), frozenset())


class Topics(SourceReader):
    """Both topics of one source, each with the number 0: `t` and `u`."""

    def __init__(self, **times: Iterable[int]) -> None:
        self.lines = {
            name: [InputRow(f"{name}.{at}", offset_=at, timestamp_=time, topic_=name) for at, time in enumerate(each)]
            for name, each in times.items()
        }
        self.at = dict.fromkeys(self.lines, 0)
        self.hidden: set[str] = set()

    def poll(self, timeout: float, most: int) -> Batch | None:
        found = [row for name, rows in self.lines.items() if name not in self.hidden for row in rows[self.at[name] :]]
        self.at |= {name: len(rows) for name, rows in self.lines.items() if name not in self.hidden}
        return Batch(found, [row.value() for row in found]) if found else None

    def caught_up(self) -> frozenset[str]:
        return frozenset(f"{name}[0]" for name, rows in self.lines.items() if self.at[name] >= len(rows))

    def positions(self, waiting: Iterable[Row] = ()) -> tuple[SplitPosition, ...]:
        return tuple(SplitPosition(f"{name}[0]", 0, at) for name, at in self.at.items())

    def finished(self) -> bool:
        return False


@pytest.mark.parametrize("together", [False, True])
def test_of_two_topics_of_one_source_the_earlier_record_goes_first_and_one_that_has_more_is_waited_for(
    together: bool,
) -> None:
    reader = Topics(t=[1, 4, 5], u=[2, 3, 7])
    reader.hidden.add("u")
    order = EventTimeOrder({"a": reader}, {}, 0.0, ManualClock(), {"a": lambda split: split[0]}, together=together)
    inputs = Inputs({"a": reader}, orders=[order])
    assert drained(inputs) == []
    reader.hidden.clear()
    assert drained(inputs) == ["t.0", "u.0", "u.1", "t.1", "t.2", "u.2"]


times = st.lists(st.one_of(st.none(), st.integers(0, 9)), max_size=12)


@given(times, times, st.integers(1, 5), st.booleans(), st.data())
def test_whatever_comes_when_every_record_comes_once_and_in_the_order_of_its_topic(
    a: list[int | None], b: list[int | None], most: int, together: bool, data: st.DataObject
) -> None:
    readers = {"a": Lines("a", {0: a, 1: b}), "b": Lines("b", {0: b, 1: a})}
    for reader in readers.values():
        reader.there = dict.fromkeys(reader.there, 0)
    inputs = in_order(readers, together=together)
    found: list[str] = []
    for turn in range(100):
        for reader in readers.values():
            for number, rows in reader.rows.items():
                reader.there[number] = min(
                    len(rows), reader.there[number] + (data.draw(st.integers(0, 3)) if turn < 30 else 12)
                )
        polled = inputs.poll(0.0, most)
        found += [] if polled is None else [told for told, _ in rows_of(polled)]
        gone = {f"{held.source}{held.partition}": held.position for held in inputs.positions(lambda _: ())}
        assert gone == {
            lane: sum(1 for value in found if value.startswith(f"{lane}.")) for lane in ("a0", "a1", "b0", "b1")
        }
    for lane, count in (("a0", len(a)), ("a1", len(b)), ("b0", len(b)), ("b1", len(a))):
        assert [value for value in found if value.startswith(f"{lane}.")] == [f"{lane}.{at}" for at in range(count)]
    inputs.check_input(CheckpointId(1))
