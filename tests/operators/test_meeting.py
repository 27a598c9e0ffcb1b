"""Ways of one source that meet again: behind them records are in its order, wherever batches end."""

from __future__ import annotations

from typing import Any

import pytest

from tests.operators.kit import Node, put_through
from twopc.column_rows import places_of
from twopc.kafka.sink import KafkaSink
from twopc.operators import Dataflow, Filter, FlatMap, Map, Process, SinkOutput, StatefulMap
from twopc.operators.meeting import Meeting, order_of
from twopc.processor import Context, Processor
from twopc.record import Batch, Record, RecordError
from twopc.serde import Json
from twopc.testing.rows import InputRow, batch_of, batch_of_values
from twopc.testing.states import DictStore

IN = Node("in")
EVEN = Node("even", ("in",), Filter(lambda value: value % 2 == 0))
ODD = Node("odd", ("in",), Filter(lambda value: value % 2))


def keep_all(seen: list[Any] | None, value: Any) -> tuple[Any, Any]:
    return [*(seen or []), value], [*(seen or []), value]


def values(outputs: list[SinkOutput]) -> list[tuple[str, list[Any]]]:
    return [(output.sink, list(output.batch.values)) for output in outputs]


def numbers(count: int) -> Batch:
    return batch_of([InputRow(number, b"k", offset_=number) for number in range(count)])


@pytest.mark.parametrize("size", [1, 7, 50])
def test_state_behind_ways_that_meet_sees_the_order_of_the_partition_in_batches_of_any_size(size: int) -> None:
    seen = Node("seen", ("both",), StatefulMap(keep_all, "seen", Json()))
    graph = Dataflow([IN, EVEN, ODD, Node("both", ("even", "odd")), seen, Node("out", ("seen",))], DictStore())
    batch = numbers(50)
    outputs = [
        value
        for start in range(0, 50, size)
        for output in put_through(graph, "in", batch.part(start, min(start + size, 50)))
        for value in output.batch.values
    ]
    assert outputs == [list(range(number + 1)) for number in range(50)]


def test_a_way_without_an_operator_meets_one_with_several_records_of_one() -> None:
    twice = Node("twice", ("in",), FlatMap(lambda value: [value * 10, value * 10 + 1]))
    graph = Dataflow([IN, twice, Node("both", ("in", "twice")), Node("out", ("both",))], DictStore())
    assert values(put_through(graph, "in", batch_of_values(1, 2))) == [("out", [1, 10, 11, 2, 20, 21])]


def test_ways_that_have_met_meet_again_in_order() -> None:
    graph = Dataflow(
        [
            IN,
            EVEN,
            ODD,
            Node("low", ("even", "odd")),
            Node("minus", ("low",), Map(lambda value: -value)),
            Node("again", ("odd", "minus", "even")),
            Node("out", ("again",)),
        ],
        DictStore(),
    )
    assert values(put_through(graph, "in", batch_of_values(1, 2, 3))) == [("out", [1, -1, -2, 2, 3, -3])]


def test_what_goes_wrong_on_one_way_costs_the_others_no_order() -> None:
    lost: list[int | None] = []

    def skip(_: str, error: RecordError) -> list[SinkOutput]:
        lost.append(error.row.offset())
        return []

    risky = Node("risky", ("in",), Map(lambda value: 60 // (value % 3)))
    graph = Dataflow([IN, risky, Node("both", ("risky", "in")), Node("out", ("both",))], DictStore(), skip)
    assert values(put_through(graph, "in", numbers(5))) == [("out", [0, 60, 1, 30, 2, 3, 60, 4])]
    assert lost == [0, 3]


def test_a_source_that_meets_nothing_of_its_own_goes_through_a_merge_as_it_is() -> None:
    graph = Dataflow([IN, Node("other"), Node("both", ("in", "other")), Node("out", ("both",))], DictStore())
    batch = batch_of_values(1, 2)
    assert put_through(graph, "in", batch)[0].batch is batch


class Apart(Processor):
    """Odd numbers go out beside the others."""

    outputs = ("odd",)

    def process(self, record: Record, context: Context) -> Record | None:
        if record.value % 2 == 0:
            return record
        context.output("odd", record)
        return None


def test_a_side_output_meets_the_records_beside_it_in_their_order() -> None:
    apart = Node("apart", ("in",), Process(Apart(), "apart"))
    graph = Dataflow([IN, apart, Node("both", ("apart", "apart.odd")), Node("out", ("both",))], DictStore())
    assert values(put_through(graph, "in", numbers(5))) == [("out", [0, 1, 2, 3, 4])]


def test_sinks_of_one_output_get_the_records_of_a_source_in_its_order() -> None:
    sinks = [Node(name, (name[2:],), KafkaSink("out")) for name in ("a-even", "b-odd", "c-odd")]
    elsewhere = Node("other", ("even",), KafkaSink("other"))
    graph = Dataflow([IN, EVEN, ODD, *sinks, elsewhere], DictStore())
    assert values(put_through(graph, "in", batch_of_values(2, 4, 5, 6))) == [
        ("other", [2, 4, 6]),
        ("a-even", [2, 4]),
        ("b-odd", [5]),
        ("c-odd", [5]),
        ("a-even", [6]),
    ]


def test_what_no_record_has_made_keeps_the_order_of_the_ways() -> None:
    meeting = Meeting()
    meeting.arrive(1, batch_of_values(3, 4))
    meeting.arrive(0, batch_of_values(1, 2))
    assert meeting.leave(order_of(())).values == [1, 2, 3, 4]
    assert meeting.is_empty


@pytest.mark.parametrize(
    ("keys", "parts"),
    [
        (["a", "b", "c", "d"], [[0, 2], [1, 3]]),
        ([1, 2, 3, 4], [[0, 2], [1, 3]]),
        ([1, 1, 2, 2], [[0, 2], [1, 3]]),
        ([1, 2, 2, 1], [[0], [1, 3], [2]]),
        (["a", "a", "a", "a"], [[0], [1], [2], [3]]),
        ([None, float("nan"), None, None], [[0], [1], [2], [3]]),
    ],
)
def test_parts_that_leave_by_key_are_as_large_as_the_order_of_each_key_allows(keys: list[Any], parts: Any) -> None:
    rows = [InputRow(b"v", b"k", offset_=number) for number in range(4)]
    meeting = Meeting()
    for way in (0, 1):
        meeting.arrive(way, Batch(rows[way::2], [b"v"] * 2, keys[way::2]))
    left = [batch for _, batch in meeting.leave_apart(order_of(rows), keys_apart=True)]
    assert [[offset for *_, offset in places_of(batch.rows)] for batch in left] == parts
