"""Calls of a processor that raise: they change nothing, and what is before and behind them goes on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from hypothesis import given

from tests.operators.kit import Node
from tests.operators.test_process import records, rows
from twopc import Context, Json, ListState, MapState, Processor, Record, ValueState
from twopc.operators import Dataflow, Process, SinkOutput, Turn
from twopc.processor import Produced
from twopc.record import RecordError
from twopc.state.layout import StateName
from twopc.testing.rows import InputRow, batch_of
from twopc.testing.states import DictStore


class Played:
    """One processor between a source and a sink, with a side output: what came out, and what went wrong."""

    def __init__(self, processor: Processor, every: Sequence[InputRow], store: DictStore | None = None) -> None:
        self.errors: list[RecordError] = []
        self.outputs: dict[str, list[Any]] = {"out": [], "beside": []}
        self.store = DictStore() if store is None else store
        nodes = [Node("in"), Node("op", ("in",), Process(processor, "op")), Node("out", ("op",))]
        flow = Dataflow([*nodes, Node("beside", ("op.side",))], self.store, self._refuse)
        flow.put(Turn.of("in", batch_of(every)))
        while flow.waits:
            for output in flow.advance()[1]:
                self.outputs[output.sink] += zip(
                    [row.offset() for row in output.batch.rows], output.batch.values, strict=True
                )
        flow.write_back()

    def _refuse(self, source: str, error: RecordError) -> list[SinkOutput]:
        self.errors.append(error)
        return []


class Everything(Processor):
    """Changes all that a call can change; then some raise, or would have done nothing."""

    total = ValueState(Json())
    last = ListState(Json())
    seen = MapState(Json())
    outputs = ("side",)

    def __init__(self, *, raises: bool) -> None:
        self.raises = raises

    def process(self, record: Record, context: Context) -> Iterator[Record]:
        value = record.value
        if value % 4 == 0 and not self.raises:
            return
        self.total.set((self.total.get() or 0) + value)
        self.last.add(value)
        self.seen.put(str(value % 3), value)
        if value % 2:
            self.last.clear()
        context.set_timer((context.stream_time or 0) + value)
        context.delete_timer((context.stream_time or 0) + value // 2)
        context.output("side", record)
        yield record.replace(value=["record", self.total.get(), self.last.get(), self.seen.items()])
        if value % 4 == 0:
            raise LookupError(value)
        context.output("side", record.replace(value="behind"))

    def on_timer(self, at: int, context: Context) -> Produced:
        if at % 5 == 0 and not self.raises:
            return None
        self.total.set((self.total.get() or 0) + 1_000)
        context.set_timer(at + 40)
        made = Record(context.key, ["timer", at, self.total.get()])
        context.output("side", made)
        if at % 5 == 0:
            raise LookupError(at)
        return made


@given(records=records)
def test_a_call_that_raises_leaves_behind_what_one_does_that_changes_nothing(
    records: list[tuple[bytes, int, int | None, int]],
) -> None:
    every = [
        InputRow(value, key_=key, partition_=number, offset_=offset, timestamp_=stamp)
        for offset, (key, value, stamp, number) in enumerate(records)
    ]
    # Timers that set a timer each would fire for ever only where stream time moved for ever.
    raising, quiet = Played(Everything(raises=True), every), Played(Everything(raises=False), every)
    assert raising.outputs == quiet.outputs
    assert raising.store.states == quiet.store.states
    assert not quiet.errors
    bad = [error.row.offset() for error in raising.errors if error.row.value() is not None]
    assert bad == [row.offset() for row in every if row.value() % 4 == 0]


class Alarm(Processor):
    fired = ValueState(Json())

    def process(self, record: Record, context: Context) -> Record:
        if record.value:
            context.set_timer(record.value)
        return record

    def on_timer(self, at: int, context: Context) -> Record:
        self.fired.set(at)
        if context.key == "bad":
            raise LookupError("no such alarm")
        return Record(context.key, f"at {at}")


def test_a_timer_that_raises_is_gone_and_the_record_that_moved_time_goes_on() -> None:
    played = Played(Alarm(), rows(("bad", 5, 1), ("good", 6, 2), ("bad", 0, 9), ("bad", 0, 10)))
    assert played.outputs["out"] == [(0, 5), (1, 6), (2, "at 6"), (2, 0), (3, 0)]
    [error] = played.errors
    assert error.doing == "on_timer of process(Alarm, name='op')"
    assert {state.name: value for (state, _, _), value in played.store.states.items()} == {
        "fired": b"6",
        "$stream-time": b"10",
    }


def test_what_stands_for_a_timer_that_raised_is_its_key_at_the_place_of_the_record_before_which_it_fired() -> None:
    row = Played(Alarm(), rows(("bad", 5, 1), ("good", 0, 9))).errors[0].row
    assert (row.key(), row.value(), row.headers(), row.timestamp()) == (b"bad", None, None, (1, 9))
    assert (row.topic(), row.partition(), row.offset()) == ("in", 0, 1)


def test_what_fired_before_a_record_that_fails_has_fired_once() -> None:
    class Strict(Alarm):
        def process(self, record: Record, context: Context) -> Record:
            if record.value is None:
                raise ValueError("no value")
            return super().process(record, context)

    played = Played(Strict(), rows(("a", 5, 1), ("b", None, 9), ("b", 0, 9)))
    assert played.outputs["out"] == [(0, 5), (1, "at 5"), (2, 0)]
    assert [error.row.offset() for error in played.errors] == [1]


class Torn(Processor):
    """A generator that yields what is no record, and would clean up whenever it is collected."""

    count = ValueState(Json())

    def process(self, record: Record, context: Context) -> Iterator[Any]:
        try:
            yield record if record.value else "no record"
        finally:
            self.count.set((self.count.get() or 0) + 1)


def test_a_generator_that_is_left_in_its_middle_ends_in_its_own_call() -> None:
    played = Played(Torn(), rows((b"a", 1, None), (b"b", 0, None), (b"c", 1, None)))
    assert [error.row.offset() for error in played.errors] == [1]
    assert {key: value for (_, _, key), value in played.store.states.items()} == {b"a": b"1", b"c": b"1"}


def test_a_store_that_fails_in_a_call_is_no_error_of_the_record() -> None:
    class Away(DictStore):
        def get_many(self, state: StateName, partition: int, keys: Sequence[bytes]) -> list[bytes | None]:
            if partition == 1 and b"a" in keys:
                raise OSError("the disk is away")
            return super().get_many(state, partition, keys)

    store = Away()
    Played(Alarm(), rows(("a", 5, 1), ("a", 0, 2)), store)
    timers = {key: value for key, value in store.states.items() if key[0].name == "$timers"}
    store.states |= {(state, 1, key): value for (state, _, key), value in timers.items()}
    store.states |= {(StateName(state.operator, "fired"), 1, b"before"): b"1" for state, _, _ in timers}
    with pytest.raises(OSError, match="the disk is away"):
        Played(Alarm(), rows(("b", 0, 9), partition=1), store)
