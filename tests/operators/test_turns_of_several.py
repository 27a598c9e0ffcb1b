"""Records of several sources in one turn: what comes of them is what comes of them one after the other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.operators.kit import Node, put_through
from twopc import Context, Json, Processor, Record, Tumbling, ValueState
from twopc.graph import Merge
from twopc.operators import (
    Dataflow,
    Filter,
    FlatMap,
    JoinTable,
    KeepTable,
    Map,
    Process,
    StatefulMap,
    Turn,
    WindowAggregate,
)
from twopc.operators.as_of_join import join_as_of
from twopc.operators.meeting_points import meeting_points
from twopc.operators.sink_output import SinkOutput
from twopc.operators.stream_join_step import JoinStreams
from twopc.operators.table_join import join_tables
from twopc.operators.window_step import Count
from twopc.record import Batch, RecordError
from twopc.testing.rows import InputRow, batch_of
from twopc.testing.states import DictStore

Read = tuple[str, bytes | str, int, int]
"""The source of a record, its key, its partition number and its value."""

BAD = 7


def pair(value: Any, other: Any) -> Any:
    if value == BAD:
        raise ValueError("seven")
    return [value, other]


def total(state: Any, value: Any) -> tuple[Any, Any]:
    if value == BAD:
        raise ValueError("seven")
    state = (state or 0) + (value if isinstance(value, int) else 1)
    return state, [value, state]


def table(name: str, source: str) -> Node:
    return Node(name, (source,), KeepTable(name, Json()))


def looked_up(name: str, stream: str, table_name: str, how: Any = "left") -> Node:
    return Node(name, (stream, table_name), JoinTable(pair, table_name, how))


class Reminder(Processor):
    """What it was given, and again five milliseconds behind."""

    last = ValueState(Json())

    def process(self, record: Record, context: Context) -> Record:
        assert context.timestamp is not None
        self.last.set(record.value)
        context.set_timer(context.timestamp + 5)
        return record.replace(value=pair(record.value, "now"))

    def on_timer(self, at: int, context: Context) -> Record:
        return Record(context.key, [at, self.last.get()])


WINDOW = Node("w", ("a",), WindowAggregate(Tumbling("7ms"), 3, Count(), "w", Json()))
A, B, C, OUT = Node("a"), Node("b"), Node("c"), "out"
COUNT = StatefulMap(total, "count", Json())
GRAPHS: dict[str, list[Node]] = {
    "a count behind a merge": [
        *(A, B, C, Node("all", ("a", "b", "c"), Merge()), Node("count", ("all",), COUNT), Node(OUT, ("count",)))
    ],
    "a merge of steps that leave records out and double them": [
        *(A, B, Node("odd", ("a",), Filter(lambda value: value % 2)), Node("twice", ("b",), FlatMap(lambda v: [v, v]))),
        *(Node("all", ("odd", "twice"), Merge()), Node("count", ("all",), COUNT), Node(OUT, ("count",))),
    ],
    "a table": [A, B, table("t", "b"), looked_up("join", "a", "t"), Node(OUT, ("join",))],
    "a table, and only what it has": [A, B, table("t", "b"), looked_up("j", "a", "t", "inner"), Node(OUT, ("j",))],
    "two tables, one behind the other": [
        *(A, B, C, table("t", "b"), looked_up("first", "a", "t"), table("u", "c"), looked_up("then", "first", "u")),
        Node(OUT, ("then",)),
    ],
    "a table for two streams": [
        *(A, B, C, table("t", "c"), looked_up("j", "a", "t"), looked_up("k", "b", "t")),
        *(Node(OUT, ("j",)), Node("other", ("k",))),
    ],
    "a table behind a merge and a count": [
        *(A, B, C, Node("both", ("a", "b"), Merge()), Node("count", ("both",), COUNT), table("t", "c")),
        *(looked_up("join", "count", "t"), Node(OUT, ("join",))),
    ],
    "two streams": [
        *(A, B, Node("join", ("a", "b"), JoinStreams(pair, "outer", 10, 0, "join", (Json(), Json())))),
        *(Node("map", ("join",), Map(str)), Node(OUT, ("map",))),
    ],
    "a table as of the time of a record": [
        *(A, B, Node("j", ("a", "b"), join_as_of(pair, "left", "j", (6, 3), (Json(), Json())))),
        *(Node("map", ("j",), Map(str)), Node(OUT, ("map",))),
    ],
    "two tables that become one": [
        *(A, B, C, Node("u", ("a", "b"), join_tables(pair, "outer", "u", (Json(), Json()))), table("t", "u")),
        *(looked_up("k", "c", "t"), Node("list", ("u",), Map(str)), Node("count", ("list",), COUNT)),
        *(Node("all", ("k", "count"), Merge()), Node(OUT, ("all",))),
    ],
    "a join of streams before a table": [
        *(A, B, C, Node("j", ("a", "b"), JoinStreams(pair, "outer", 10, 0, "j", (Json(), Json())))),
        *(table("t", "c"), looked_up("k", "j", "t"), Node(OUT, ("k",))),
    ],
    "a window before a merge and a table": [
        *(A, B, C, WINDOW, Node("all", ("w.final", "w.current", "b"), Merge())),
        *(Node("list", ("all",), Map(str)), Node("count", ("list",), COUNT), table("t", "c")),
        *(looked_up("k", "count", "t"), Node(OUT, ("k",))),
    ],
    "windows that become a table": [
        *(A, B, C, WINDOW, Node("x", ("w.final",), Map(str)), table("t", "x"), looked_up("k", "b", "t")),
        *(Node("all", ("k", "c"), Merge()), Node("count", ("all",), COUNT), Node(OUT, ("count",))),
    ],
    "timers before a table": [
        *(A, B, Node("p", ("a",), Process(Reminder(), "p")), table("t", "b"), looked_up("k", "p", "t")),
        Node(OUT, ("k",)),
    ],
    "a branch that meets nobody": [
        *(A, B, table("t", "b"), looked_up("join", "a", "t"), Node("map", ("a",), Map(str)), Node("other", ("map",))),
        Node(OUT, ("join",)),
    ],
}


class Played:
    """A graph, and all that came out of it, by sink in order; at `dead` what went wrong, with its source."""

    def __init__(self, nodes: Sequence[Node]) -> None:
        self.store = DictStore()
        self.flow = Dataflow(nodes, self.store, self._refused)
        self.out: dict[str, list[Any]] = {}

    def _refused(self, source: str, error: RecordError) -> Sequence[SinkOutput]:
        return [SinkOutput("dead", Batch([error.row], [(source, str(error.row.value()))]))]

    def take(self, outputs: Sequence[SinkOutput]) -> None:
        for output in outputs:
            self.out.setdefault(output.sink, []).extend(output.batch.values)

    def to_the_end(self) -> None:
        while self.flow.waits:
            self.take(self.flow.advance()[1])

    def all_of_it(self) -> tuple[Any, ...]:
        self.flow.write_back()
        return self.out, self.store.states


def rows(read: Sequence[Read]) -> list[tuple[str, InputRow]]:
    """The rows in their order, each source with a topic of its own, and times that grow."""
    return [
        (source, InputRow(value, key_=key, topic_=source, partition_=number, offset_=at, timestamp_=100 + at))
        for at, (source, key, number, value) in enumerate(read)
    ]


def turn_of(some: Sequence[tuple[str, InputRow]]) -> Turn:
    by_source: dict[str, list[InputRow]] = {}
    for source, row in some:
        by_source.setdefault(source, []).append(row)
    parts = tuple((source, Batch(own, [row.value() for row in own])) for source, own in by_source.items())
    order = {(row.topic_, row.partition_, row.offset_): number for number, (_, row) in enumerate(some)}
    return Turn(parts, order if len(parts) > 1 else None)


@pytest.mark.parametrize("nodes", GRAPHS.values(), ids=GRAPHS.keys())
@given(
    read=st.lists(
        st.tuples(
            st.sampled_from("abc"), st.sampled_from([b"k", "k", b"l", b"m"]), st.integers(0, 1), st.integers(0, 9)
        ),
        max_size=40,
    ),
    size=st.integers(1, 40),
)
def test_what_comes_of_a_turn_is_what_comes_of_its_records_one_after_the_other(
    nodes: Sequence[Node], read: list[Read], size: int
) -> None:
    there = {node.id for node in nodes}
    some = [each for each in rows(read) if each[0] in there]
    single, several = Played(nodes), Played(nodes)
    for source, row in some:
        single.take(put_through(single.flow, source, batch_of([row])))
    for start in range(0, len(some), size):
        several.flow.put(turn_of(some[start : start + size]))
        several.to_the_end()
    assert several.all_of_it() == single.all_of_it()


def test_records_of_a_turn_wait_until_it_is_gone_through() -> None:
    flow = Dataflow(GRAPHS["a table"], DictStore())
    some = rows([("a", b"k", 0, 1), ("b", b"k", 0, 2), ("a", b"l", 0, 3)])
    flow.put(turn_of(some))
    assert [row.value() for row in flow.waiting_rows("a")] == [1, 3]
    assert [row.value() for row in flow.waiting_rows("b")] == [2]
    assert flow.advance()[0] == 3
    assert not flow.waits
    assert list(flow.waiting_rows("a")) == []


def test_a_record_of_a_turn_that_goes_wrong_is_that_of_its_own_source() -> None:
    played = Played(GRAPHS["a count behind a merge"])
    played.flow.put(turn_of(rows([("a", b"k", 0, 1), ("b", b"k", 0, BAD), ("c", b"k", 0, 2)])))
    played.to_the_end()
    assert played.out == {"out": [[1, 1], [2, 3]], "dead": [("b", str(BAD))]}


def cutting(made: list[Played], at: frozenset[int]) -> Map:
    def value_and_cut(value: Any) -> Any:
        if (value[0] if isinstance(value, list) else value) in at:
            made[-1].flow.cut()
        if value == BAD:
            raise ValueError("seven")
        return value

    return Map(value_and_cut)


@pytest.mark.parametrize(
    "met",
    [
        "in a merge",
        "at a table",
        "behind a state",
        "in a merge before a table",
        "in a join of streams",
        "at a table behind a window",
    ],
)
@given(
    read=st.lists(
        st.tuples(st.sampled_from("ab"), st.sampled_from([b"k", b"l"]), st.integers(0, 1), st.integers(0, 9)),
        min_size=2,
        max_size=30,
    ),
    before=st.frozensets(st.integers(0, 9)),
    behind=st.frozensets(st.integers(0, 9)),
)
def test_a_turn_that_is_cut_has_done_its_first_records_and_nothing_of_the_others(
    read: list[Read], before: frozenset[int], behind: frozenset[int], met: str
) -> None:
    made: list[Played] = []
    slow = [A, B, Node("x", ("a",), cutting(made, before)), Node("y", ("b",), cutting(made, before))]
    keyed = Node("count", ("z",), COUNT)
    nodes = {
        "in a merge": [
            *(*slow, Node("all", ("x", "y"), Merge()), Node("z", ("all",), cutting(made, behind))),
            *(keyed, Node(OUT, ("count",))),
        ],
        "at a table": [*slow, table("t", "y"), looked_up("join", "x", "t"), Node(OUT, ("join",))],
        "in a merge before a table": [
            *(*slow, C, Node("all", ("x", "y"), Merge()), table("t", "c"), looked_up("join", "all", "t")),
            *(Node("z", ("join",), cutting(made, behind)), keyed, Node(OUT, ("count",))),
        ],
        "in a join of streams": [
            *(*slow, Node("join", ("x", "y"), JoinStreams(pair, "outer", 10, 0, "join", (Json(), Json())))),
            Node(OUT, ("join",)),
        ],
        "at a table behind a window": [
            *(*slow, Node("w", ("x",), WINDOW.operation), table("t", "y"), looked_up("join", "w.final", "t")),
            Node(OUT, ("join",)),
        ],
        "behind a state": [
            *slow,
            Node("n", ("x",), COUNT),
            table("t", "y"),
            looked_up("join", "n", "t"),
            Node(OUT, ("join",)),
        ],
    }[met]
    some = rows(read)
    made.append(several := Played(nodes))
    several.flow.put(turn_of(some))
    done = 0
    while several.flow.waits:
        count, outputs = several.flow.advance()
        several.take(outputs)
        done += count
        waiting = [row for source in "ab" for row in several.flow.waiting_rows(source)]
        assert sorted(waiting, key=InputRow.offset) == [row for _, row in some[done:]]  # type: ignore[arg-type]
        made.append(single := Played(nodes))
        for source, row in some[:done]:
            single.take(put_through(single.flow, source, batch_of([row])))
        made.pop()
        assert several.all_of_it() == single.all_of_it()
    assert done == len(some)


@pytest.mark.parametrize("is_behind", [False, True])
def test_a_turn_is_cut_before_the_place_where_its_records_meet_and_behind_a_merge(is_behind: bool) -> None:
    made: list[Played] = []
    slow = cutting(made, frozenset({2}))
    before = [A, B, Node("x", ("a",), slow), Node("all", ("x", "b"), Merge()), Node("n", ("all",), COUNT)]
    behind = [A, B, Node("all", ("a", "b"), Merge()), Node("x", ("all",), slow), Node("n", ("x",), COUNT)]
    made.append(played := Played([*(behind if is_behind else before), Node(OUT, ("n",))]))
    played.flow.put(turn_of(rows([("a", b"k", 0, 1), ("a", b"k", 0, 2), ("b", b"k", 0, 3), ("a", b"k", 0, 4)])))
    # Whoever is cut goes on to the end of the record in hand; that of the other source has not come yet.
    assert played.flow.advance()[0] == 2
    assert [row.value() for row in played.flow.waiting_rows("a")] == [4]
    assert [row.value() for row in played.flow.waiting_rows("b")] == [3]


def test_places_are_left_each_behind_those_that_its_records_come_through() -> None:
    points = meeting_points(GRAPHS["two tables, one behind the other"])
    assert points == (frozenset({"t", "first"}), frozenset({"u", "then"}))


@pytest.mark.parametrize(
    "nodes",
    [
        pytest.param(
            [A, B, table("t", "b"), looked_up("j", "a", "t"), looked_up("k", "j", "t"), Node(OUT, ("k",))],
            id="a table looked into twice by one record",
        ),
        pytest.param(
            [
                *(A, B, C, table("t", "c"), looked_up("j", "a", "t"), table("u", "j"), looked_up("k", "b", "u")),
                *(looked_up("l", "k", "t"), Node(OUT, ("l",))),
            ],
            id="two places that feed each other",
        ),
    ],
)
def test_where_one_order_can_not_be_kept_sources_have_turns_of_their_own(nodes: Sequence[Node]) -> None:
    assert meeting_points(nodes) is None
    assert not Dataflow(nodes, DictStore()).takes_several
