"""Tables by their definition make what a run makes; what its operators do wrong is not repeated."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.operators.kit import Node, put_through
from twopc import Job, Json, KafkaSink, KafkaSource, Tumbling
from twopc.operators import Dataflow, JoinTable, KeepTable, Turn
from twopc.operators.aligned_windows import AlignedWindows
from twopc.operators.table import TableJoin
from twopc.operators.table_join import join_tables
from twopc.testing.rows import InputRow, batch_of
from twopc.testing.states import DictStore
from twopc.verify.paths import Paths
from twopc.verify.plain import plainly
from twopc.verify.replay import Replay

PARTS = st.lists(
    st.tuples(st.sampled_from(["orders", "customers"]), st.sampled_from("ab"), st.integers(0, 1), st.integers(0, 3)),
    max_size=40,
)


def made_of(parts: list[tuple[str, str, int, int]], how: Any, *, plain: bool) -> list[Any]:
    """What comes of records, 0 being a tombstone, in batches of up to three."""
    steps = [KeepTable("customers", Json()), JoinTable(lambda one, other: [one, other], "table", how)]
    table, join = (plainly(step) if plain else step for step in steps)
    nodes = [
        Node("orders"),
        Node("customers"),
        Node("table", ("customers",), table),
        Node("join", ("orders", "table"), join),
        Node("out", ("join",)),
    ]
    flow = Dataflow(nodes, DictStore())
    found: list[Any] = []
    while parts:
        source = parts[0][0]
        some = next((n for n, each in enumerate(parts[:3]) if each[0] != source), min(3, len(parts)))
        rows = [InputRow(value or None, key_=key, partition_=number) for _, key, number, value in parts[:some]]
        for output in put_through(flow, source, batch_of(rows)):
            found += zip(output.batch.keys, output.batch.values, strict=True)
        parts = parts[some:]
    return found


@given(PARTS, st.sampled_from(["inner", "left"]))
def test_a_join_with_a_table_makes_the_same(parts: list[tuple[str, str, int, int]], how: str) -> None:
    assert made_of(parts, how, plain=True) == made_of(parts, how, plain=False)


def combined(parts: list[tuple[str, str, int, int]], how: Any, *, plain: bool) -> list[Any]:
    """What comes of the changes of two tables, one after the other; and what failed."""

    def fragile(one: Any, other: Any) -> list[Any]:
        assert (one, other) != (3, 1)
        return [one, other]

    step = join_tables(fragile, how, "both", (Json(), Json()))
    nodes = [
        Node("orders"),
        Node("customers"),
        Node("both", ("orders", "customers"), plainly(step) if plain else step),
        Node("out", ("both",)),
    ]
    found: list[Any] = []

    def failed(source: str, error: Any) -> Any:
        found.append(error.row.value())
        return ()

    flow = Dataflow(nodes, DictStore(), failed)
    for source, key, number, value in parts:
        row = InputRow(value or None, key_=key, partition_=number, timestamp_=1)
        for output in put_through(flow, source, batch_of([row])):
            found += zip(output.batch.keys, output.batch.values, strict=True)
    return found


@given(PARTS, st.sampled_from(["inner", "left", "outer"]))
def test_a_join_of_tables_makes_the_same(parts: list[tuple[str, str, int, int]], how: str) -> None:
    assert combined(parts, how, plain=True) == combined(parts, how, plain=False)


def counting_and_naming() -> Job:
    job = Job("job")
    clicks = job.source(KafkaSource("clicks", value=Json()), name="clicks", timestamp=lambda click: click["at"])
    names = job.source(KafkaSource("names", value=Json()), name="names").table("by-id")
    counted = clicks.window(Tumbling("10ms")).count(name="n").final().map(lambda window: window.value)
    counted.sink(KafkaSink("counted", value=Json()))
    return clicks.join(names, lambda click, name: name, how="left").sink(KafkaSink("named", value=Json()))


def expected() -> list[tuple[str, bytes | None]]:
    with Replay(Paths.of(counting_and_naming().definition())) as replay:
        names = Turn.of("names", batch_of([InputRow("ada", b"k", timestamp_=0)]))
        clicks = Turn.of("clicks", batch_of([InputRow({"at": at}, b"k", timestamp_=at) for at in (1, 2, 12)]))
        return [(each.topic, each.expected.value) for turn in (names, clicks) for each in replay.make(turn)]


def test_what_the_operators_of_a_run_do_wrong_is_not_expected_of_its_output(monkeypatch: pytest.MonkeyPatch) -> None:
    right = [("counted", b"2"), *[("named", b'"ada"')] * 3]
    assert sorted(expected()) == right
    monkeypatch.setattr(AlignedWindows, "change", lambda *_: None)
    monkeypatch.setattr(TableJoin, "_looked_up", lambda _, batch, keys: [None] * len(keys))
    assert sorted(expected()) == right
