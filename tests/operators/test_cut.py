"""A chain that is cut anywhere, any number of times, gives the outputs and states of one that is not."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.operators.kit import Chain, row
from twopc.errors import UserCodeError
from twopc.operators import (
    AssignTimestamps,
    Filter,
    FilterRecords,
    FlatMap,
    FlatMapRecords,
    KeyByRecords,
    Map,
    MapAsync,
    MapAsyncRecords,
    MapRecords,
    Peek,
    PeekRecords,
    Process,
    StatefulMap,
    Step,
)
from twopc.operators.turn import Turn
from twopc.processor import Context, Processor, ValueState
from twopc.record import Record
from twopc.serde import Json
from twopc.testing.rows import InputRow, batch_of
from twopc.testing.states import DictStore


def total(state: int | None, value: int) -> tuple[int, int]:
    return (state or 0) + value, (state or 0) + value


KINDS: dict[str, Callable[[Callable[[Any], Any]], Step]] = {
    "map": lambda at: Map(lambda value: at(value) + 1),
    "filter": lambda at: Filter(lambda value: at(value) % 3),
    "map_records": lambda at: MapRecords(lambda record: record.replace(value=at(record.value) + 2)),
    "filter_records": lambda at: FilterRecords(lambda record: at(record.value) % 5),
    "peek": lambda at: Peek(at),
    "peek_records": lambda at: PeekRecords(lambda record: at(record.value)),
    "map_async": lambda at: MapAsync(awaited(lambda value: at(value) * 3), 3, None, 0),
    "map_async_records": lambda at: MapAsyncRecords(
        awaited(lambda record: record.replace(value=at(record.value) + 4)), 3, None, 0
    ),
    "flat_map": lambda at: FlatMap(lambda value: [at(value), value + 1]),
    "flat_map_records": lambda at: FlatMapRecords(lambda record: doubled(at, record)),
    "assign_timestamps": lambda at: AssignTimestamps(at),
    "key_by_records": lambda at: KeyByRecords(lambda record: at(record.value)),
    "process": lambda at: Process(Totals(at), "totals"),
    "stateful_map": lambda at: StatefulMap(lambda state, value: total(state, at(value)), "total", Json()),
}


def awaited(function: Callable[[Any], Any]) -> Callable[[Any], Awaitable[Any]]:
    async def call(element: Any) -> Any:
        result = function(element)
        await asyncio.sleep(0)
        return result

    return call


class Totals(Processor):
    total = ValueState(Json())

    def __init__(self, at: Callable[[Any], Any]) -> None:
        self.at = at

    def process(self, record: Record, context: Context) -> list[Record]:
        self.total.set(total(self.total.get(), self.at(record.value))[0])
        return [record.replace(value=self.total.get())] * (record.value % 3)


def doubled(at: Callable[[Any], Any], record: Record) -> list[Record]:
    at(record.value)
    return [record, record]


def rows(values: list[int]) -> list[InputRow]:
    return [
        InputRow(value, b"%d" % (value % 2), partition_=offset % 2, offset_=offset)
        for offset, value in enumerate(values)
    ]


@given(
    kinds=st.lists(st.sampled_from(sorted(KINDS)), max_size=4, unique=True),
    values=st.lists(st.integers(0, 50), min_size=1, max_size=12),
    seed=st.integers(0, 2**32),
)
def test_cuts_change_neither_outputs_nor_states_nor_how_often_a_function_is_called(
    kinds: list[str], values: list[int], seed: int
) -> None:
    chance, calls = random.Random(seed), [0, 0]

    def cutting(value: int) -> int:
        calls[0] += 1
        if chance.random() < 0.4:
            flow.cut()
        return value

    def quiet(value: int) -> int:
        calls[1] += 1
        return value

    store, expected_store = DictStore(), DictStore()
    flow = row([KINDS[kind](cutting) for kind in kinds], store)
    outputs: list[tuple[int, Any]] = []
    flow.put(Turn.of("in", batch_of(rows(values))))
    counted = 0
    while flow.waits:
        waited = [row.offset() or 0 for row in flow.waiting_rows("in")]
        assert waited == sorted(waited)
        count, came_out = flow.advance()
        batch = came_out[0].batch if came_out else batch_of([])
        counted += count
        behind = {row.offset() for row in flow.waiting_rows("in")}
        assert behind.isdisjoint(row.offset() for row in batch.rows), "what came out does not wait"
        outputs += zip([row.offset() or 0 for row in batch.rows], batch.values, strict=True)
    flow.write_back()
    whole = Chain([KINDS[kind](quiet) for kind in kinds], expected_store)
    batch = whole.process(batch_of(rows(values)))
    whole.write_back()
    assert outputs == list(zip([row.offset() for row in batch.rows], batch.values, strict=True))
    assert store.states == expected_store.states
    assert calls[0] == calls[1]
    assert counted == len(values)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "flat_map_records"])
def test_a_record_that_fails_behind_a_cut_that_comes_too_late_is_named(kind: str) -> None:
    def fail(value: int) -> int:
        flow.cut()
        if value == 3:
            raise ValueError("three")
        return value

    flow = row([KINDS[kind](fail)], DictStore())
    flow.put(Turn.of("in", batch_of(rows([1, 2, 3, 4]))))
    flow.advance()
    flow.advance()
    with pytest.raises(UserCodeError, match=r"record in\[0\]@2: .*three"):
        flow.advance()
