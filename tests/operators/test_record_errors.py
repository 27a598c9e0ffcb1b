"""Records that go wrong in a dataflow that is cut anywhere: none beside them is lost, doubled or done again."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.operators.kit import row
from twopc import Context, Processor, Record
from twopc.operators import (
    Filter,
    FilterRecords,
    FlatMap,
    FlatMapRecords,
    Map,
    MapRecords,
    Peek,
    PeekRecords,
    Process,
    SinkOutput,
    StatefulMap,
    Step,
)
from twopc.operators.turn import Turn
from twopc.record import Batch, ErrorStage, RecordError
from twopc.serde import Json
from twopc.testing.rows import InputRow
from twopc.testing.states import DictStore

Check = Callable[[str, Any], Any]


class Checking(Processor):
    def __init__(self, at: Check) -> None:
        self.at = at

    def __deepcopy__(self, memo: Any) -> Checking:
        return self

    def process(self, record: Record, context: Context) -> Record:
        return record.replace(value=self.at("process", record.value))


KINDS: dict[str, Callable[[Check], Step]] = {
    "map": lambda at: Map(lambda value: at("map", value)),
    "filter": lambda at: Filter(lambda value: at("filter", value) is not None),
    "map_records": lambda at: MapRecords(lambda record: record.replace(value=at("map_records", record.value))),
    "filter_records": lambda at: FilterRecords(lambda record: at("filter_records", record.value) is not None),
    "peek": lambda at: Peek(lambda value: at("peek", value)),
    "peek_records": lambda at: PeekRecords(lambda record: at("peek_records", record.value)),
    "flat_map": lambda at: FlatMap(lambda value: [at("flat_map", value), value]),
    "flat_map_records": lambda at: FlatMapRecords(
        lambda record: [record.replace(value=at("flat_map_records", record.value))]
    ),
    "process": lambda at: Process(Checking(at), "checking"),
    "stateful_map": lambda at: StatefulMap(
        lambda state, value: ((state or 0) + 1, at("stateful_map", value)), "seen", Json()
    ),
}


def source_batch(values: list[int]) -> Batch:
    """Return what a source makes of these, of which it can't decode every negative one."""
    rows = [InputRow(value, b"%d" % (at % 2), at % 2, at) for at, value in enumerate(values)]
    good = [each for each in rows if each.value_ >= 0]
    errors = []
    for at, each in enumerate(rows):
        if each.value_ < 0:
            before = sum(other.value_ >= 0 for other in rows[:at])
            errors.append((before, RecordError(each, ErrorStage.VALUE_CONVERTER, "decoding", ValueError())))
    return Batch(good, [each.value_ for each in good], errors=errors)


@given(
    kinds=st.lists(st.sampled_from(sorted(KINDS)), max_size=4, unique=True),
    values=st.lists(st.integers(-1, 9), min_size=1, max_size=14),
    seed=st.integers(0, 2**32),
)
def test_what_waits_what_came_out_and_what_went_wrong_are_all_that_was_put_in(
    kinds: list[str], values: list[int], seed: int
) -> None:
    chance, calls = random.Random(seed), Counter[tuple[str, int]]()
    refused: list[int] = []

    def at(kind: str, value: int) -> int:
        if chance.random() < 0.3:
            flow.cut()
        calls[kind, value] += 1
        if value == kinds.index(kind) + 1:
            raise LookupError(kind)
        return value

    def refuse(source: str, error: RecordError) -> list[SinkOutput]:
        refused.append(error.row.offset() or 0)
        return []

    store = DictStore()
    flow = row([KINDS[kind](at) for kind in kinds], store, refuse)
    flow.put(Turn.of("in", source_batch(values)))
    outputs: list[int] = []
    while flow.waits:
        waiting = [each.offset() or 0 for each in flow.waiting_rows("in")]
        assert waiting == sorted(waiting)
        assert waiting == list(range(min(waiting), len(values))), (
            "positions: nothing behind the first that waits is done"
        )
        _, came_out = flow.advance()
        outputs += [each.offset() or 0 for output in came_out for each in output.batch.rows]
    flow.write_back()
    repeats = 2 if "flat_map" in kinds else 1
    bad = {offset for offset, value in enumerate(values) if value < 0 or 1 <= value <= len(kinds)}
    assert outputs == [offset for offset in range(len(values)) if offset not in bad for _ in range(repeats)]
    assert set(refused) == bad
    behind_flat_map = kinds[kinds.index("flat_map") + 1 :] if "flat_map" in kinds else []
    fails_at = {offset: kinds[values[offset] - 1] for offset in bad if values[offset] > 0}
    assert Counter(refused) == {offset: 2 if fails_at.get(offset) in behind_flat_map else 1 for offset in bad}
    for (kind, value), count in calls.items():
        assert count == values.count(value) * (2 if kind in behind_flat_map else 1), "no function is called again"
    assert sum(int(state or 0) for state in store.states.values()) == (
        sum(
            (2 if "stateful_map" in behind_flat_map else 1)
            for offset, value in enumerate(values)
            if value >= 0 and (offset not in bad or value - 1 > kinds.index("stateful_map"))
        )
        if "stateful_map" in kinds
        else 0
    )
