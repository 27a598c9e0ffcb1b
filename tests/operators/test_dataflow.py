"""Graphs: what goes on in several directions, what merges, and how far a batch may be cut."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.operators.kit import Node, put_through
from twopc.operators import Dataflow, Filter, FlatMap, Map, SinkOutput, StatefulMap, Turn
from twopc.record import Batch
from twopc.serde import Json
from twopc.testing.rows import InputRow, batch_of, batch_of_values
from twopc.testing.states import DictStore


def values(outputs: list[SinkOutput]) -> list[tuple[str, list[Any]]]:
    return [(output.sink, list(output.batch.values)) for output in outputs]


def flow(*nodes: Node) -> Dataflow:
    return Dataflow(nodes, DictStore())


def test_a_stream_that_goes_on_in_several_directions_reaches_every_sink_in_its_order() -> None:
    branches = flow(
        Node("in"),
        Node("all", ("in",)),
        Node("even", ("in",), Filter(lambda value: value % 2 == 0)),
        Node("evens", ("even",)),
        Node("twice", ("even",), FlatMap(lambda value: [value, value])),
        Node("pairs", ("twice",)),
    )
    assert values(put_through(branches, "in", batch_of_values(1, 2, 3, 4))) == [
        ("all", [1, 2, 3, 4]),
        ("evens", [2, 4]),
        ("pairs", [2, 2, 4, 4]),
    ]


def test_a_batch_is_not_copied_for_a_branch() -> None:
    batch = batch_of_values(1, 2)
    branches = flow(Node("in"), Node("one", ("in",)), Node("other", ("in",)))
    assert all(output.batch is batch for output in put_through(branches, "in", batch))


def test_a_branch_of_which_nothing_is_left_writes_nothing() -> None:
    branches = flow(
        Node("in"), Node("none", ("in",), Filter(lambda _: False)), Node("a", ("none",)), Node("b", ("in",))
    )
    assert values(put_through(branches, "in", batch_of_values(1))) == [("b", [1])]


def test_merged_streams_go_through_the_same_operator() -> None:
    merged = flow(
        Node("web"),
        Node("app"),
        Node("short", ("web",), Map(lambda value: value * 10)),
        Node("both", ("short", "app")),
        Node("total", ("both",), StatefulMap(lambda total, value: ((total or 0) + value,) * 2, "total", Json())),
        Node("out", ("total",)),
    )
    first, second = (batch_of([InputRow(value, key_=b"k")]) for value in (1, 5))
    assert values(put_through(merged, "web", first)) == [("out", [10])]
    assert values(put_through(merged, "app", second)) == [("out", [15])]


def test_what_branches_and_merges_again_comes_out_once_for_each_path_in_the_order_of_the_source() -> None:
    diamond = flow(
        Node("in"),
        Node("left", ("in",), Map(lambda value: -value)),
        Node("both", ("left", "in")),
        Node("out", ("both",)),
    )
    assert values(put_through(diamond, "in", batch_of_values(1, 2))) == [("out", [-1, 1, -2, 2])]


def advanced(dataflow: Dataflow, batch: Batch, source: str = "in") -> list[list[tuple[str, list[Any]]]]:
    dataflow.put(Turn.of(source, batch))
    turns = []
    while dataflow.waits:
        turns.append(values(dataflow.advance()[1]))
    return turns


def cutting(dataflow: list[Dataflow]) -> Callable[[Any], Any]:
    def cut(value: Any) -> Any:
        dataflow[0].cut()
        return value

    return cut


def test_a_batch_is_cut_before_it_branches_and_never_behind_that() -> None:
    made: list[Dataflow] = []
    cut = cutting(made)
    nodes = Node("in"), Node("first", ("in",), Map(cut)), Node("a", ("first",)), Node("b", ("first",))
    made[:] = [flow(*nodes)]
    assert advanced(made[0], batch_of_values(1, 2)) == [[("a", [1]), ("b", [1])], [("a", [2]), ("b", [2])]]
    made[:] = [flow(Node("in"), Node("a", ("in",)), Node("slow", ("in",), Map(cut)), Node("b", ("slow",)))]
    assert advanced(made[0], batch_of_values(1, 2)) == [[("a", [1, 2]), ("b", [1, 2])]]


def test_a_batch_is_cut_behind_a_merge_as_its_own_source_leads_there() -> None:
    made: list[Dataflow] = []
    cut = cutting(made)
    made[:] = [
        flow(
            Node("web"),
            Node("app"),
            Node("apart", ("app",)),
            Node("both", ("web", "app")),
            Node("slow", ("both",), Map(cut)),
            Node("out", ("slow",)),
        )
    ]
    assert advanced(made[0], batch_of_values(1, 2), "web") == [[("out", [1])], [("out", [2])]]
    assert advanced(made[0], batch_of_values(1, 2), "app") == [[("apart", [1, 2]), ("out", [1, 2])]]


def test_only_the_source_of_the_batch_has_rows_that_wait() -> None:
    made: list[Dataflow] = []
    both = Node("both", ("web", "app"))
    made[:] = [flow(Node("web"), Node("app"), both, Node("map", ("both",), Map(cutting(made))), Node("out", ("map",)))]
    made[0].put(Turn.of("web", batch_of_values(1, 2)))
    assert made[0].advance()[0] == 1
    assert [row.offset() for row in made[0].waiting_rows("web")] == [1]
    assert list(made[0].waiting_rows("app")) == []
