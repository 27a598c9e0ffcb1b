"""A table and the streams that are joined with it: what is looked up, when, and what a failure leaves behind."""

from __future__ import annotations

from typing import Any

import pytest

from tests.operators.kit import Node, put_through
from twopc import ConfigurationError, Json
from twopc.operators import Dataflow, JoinTable, KeepTable, Map, Turn
from twopc.operators.sink_output import OnError, SinkOutput, fail
from twopc.record import RecordError
from twopc.state.layout import ROWS, StateName
from twopc.testing.rows import InputRow, batch_of
from twopc.testing.states import DictStore

CUSTOMERS = StateName("customers", "customers")


def pair(order: Any, customer: Any) -> list[Any]:
    return [order, customer]


def flow(store: DictStore, how: Any = "left", function: Any = pair, on_error: OnError = fail) -> Dataflow:
    """Orders joined with customers."""
    return Dataflow(
        [
            Node("orders"),
            Node("in"),
            Node("customers", ("in",), KeepTable("customers", Json())),
            Node("join", ("orders", "customers"), JoinTable(function, "customers", how)),
            Node("out", ("join",)),
        ],
        store,
        on_error,
        numbers=(0, 1),
    )


def rows(*parts: tuple[Any, Any], partition: int = 0) -> list[InputRow]:
    return [
        InputRow(value, key_=key, partition_=partition, offset_=offset) for offset, (key, value) in enumerate(parts)
    ]


def fed(dataflow: Dataflow, source: str, *parts: tuple[Any, Any], partition: int = 0) -> list[Any]:
    outputs = put_through(dataflow, source, batch_of(rows(*parts, partition=partition)))
    return [value for output in outputs for value in output.batch.values]


def test_a_record_meets_what_the_table_has_for_its_key_just_now() -> None:
    dataflow = flow(DictStore())
    assert fed(dataflow, "in", (b"a", "A"), (b"b", "B"), (b"a", "A2")) == []
    assert fed(dataflow, "orders", (b"a", 1), (b"b", 2), (b"c", 3)) == [[1, "A2"], [2, "B"], [3, None]]
    fed(dataflow, "in", (b"a", "A3"), (b"b", None))
    assert fed(dataflow, "orders", (b"a", 4), (b"b", 5)) == [[4, "A3"], [5, None]]


def test_an_inner_join_drops_what_the_table_has_nothing_for() -> None:
    dataflow = flow(DictStore(), "inner")
    fed(dataflow, "in", (b"b", "B"))
    assert fed(dataflow, "orders", (b"a", 1), (b"b", 2), (b"c", 3), (b"b", 4)) == [[2, "B"], [4, "B"]]


def test_a_table_is_kept_by_partition_number() -> None:
    dataflow = flow(DictStore())
    fed(dataflow, "in", (b"a", "A"), partition=1)
    assert fed(dataflow, "orders", (b"a", 1), partition=0) == [[1, None]]
    assert fed(dataflow, "orders", (b"a", 1), partition=1) == [[1, "A"]]


def test_the_store_has_the_table_after_it_was_written_back_and_nothing_that_was_deleted() -> None:
    store = DictStore()
    dataflow = flow(store)
    fed(dataflow, "in", (b"a", {"n": 1}), (b"b", 2), (b"a", {"n": 3}), (b"b", None))
    dataflow.write_back()
    assert store.states == {(CUSTOMERS, 0, b"a"): b'{"n":3}', (StateName("customers", ROWS), 0, b""): b"1"}
    assert fed(flow(store), "orders", (b"a", 1), (b"b", 2)) == [[1, {"n": 3}], [2, None]]


def test_a_table_that_is_fed_is_not_read() -> None:
    store = DictStore()
    fed(flow(store), "in", (b"a", 1), (b"b", 2))
    assert [read for read in store.reads if read[0].is_declared] == []


def test_what_a_join_changes_in_place_is_not_in_the_table() -> None:
    def named(order: Any, customer: dict[str, Any]) -> dict[str, Any]:
        customer["orders"] = order
        return customer

    dataflow = flow(DictStore(), function=named)
    fed(dataflow, "in", (b"a", {}))
    fed(dataflow, "orders", (b"a", 1))
    assert fed(dataflow, "orders", (b"a", 2)) == [{"orders": 2}]


def refusing() -> tuple[list[RecordError], OnError]:
    errors: list[RecordError] = []

    def refuse(source: str, error: RecordError) -> list[SinkOutput]:
        errors.append(error)
        return []

    return errors, refuse


@pytest.mark.parametrize("how", ["inner", "left"])
def test_a_record_on_which_the_function_raises_is_named_and_the_others_go_on(how: str) -> None:
    def picky(order: int, customer: str) -> str:
        return f"{6 // order}{customer}"

    errors, on_error = refusing()
    dataflow = flow(DictStore(), how, picky, on_error)
    fed(dataflow, "in", (b"a", "A"), (b"b", "B"))
    orders = ((b"b", 2), (b"a", 0), (b"b", 3))
    assert fed(dataflow, "orders", *orders) == ["3B", "2B"]
    assert [(error.row.offset(), type(error.cause)) for error in errors] == [(1, ZeroDivisionError)]


def test_a_value_that_the_tables_serde_refuses_leaves_the_table_as_it_was() -> None:
    errors, on_error = refusing()
    dataflow = flow(DictStore(), on_error=on_error)
    fed(dataflow, "in", (b"a", "A"), (b"a", b"bytes"), (b"b", "B"))
    assert fed(dataflow, "orders", (b"a", 1), (b"b", 2)) == [[1, "A"], [2, "B"]]
    assert [error.row.offset() for error in errors] == [1]
    assert "the new value of state 'customers' can't be encoded by Json()" in str(errors[0].cause)


@pytest.mark.parametrize("source", ["orders", "in"])
def test_a_record_without_a_key_is_refused_by_name(source: str) -> None:
    errors, on_error = refusing()
    fed(flow(DictStore(), on_error=on_error), source, (b"a", 1), (None, 2), (b"a", 3))
    assert [error.row.offset() for error in errors] == [1]
    assert "has no key" in str(errors[0].cause)


def test_two_joins_look_into_one_table() -> None:
    nodes = [
        Node("orders"),
        Node("in"),
        Node("customers", ("in",), KeepTable("customers", Json())),
        Node("first", ("orders", "customers"), JoinTable(pair, "customers", "inner")),
        Node("second", ("first", "customers"), JoinTable(pair, "customers", "left")),
        Node("out", ("second",)),
    ]
    dataflow = Dataflow(nodes, DictStore())
    fed(dataflow, "in", (b"a", "A"))
    assert fed(dataflow, "orders", (b"a", 1), (b"b", 2)) == [[[1, "A"], "A"]]


def test_a_table_can_be_made_of_what_was_mapped() -> None:
    nodes = [
        Node("orders"),
        Node("in"),
        Node("upper", ("in",), Map(lambda value: value and value.upper())),
        Node("customers", ("upper",), KeepTable("customers", Json())),
        Node("join", ("orders", "customers"), JoinTable(pair, "customers", "left")),
        Node("out", ("join",)),
    ]
    dataflow = Dataflow(nodes, DictStore())
    fed(dataflow, "in", (b"a", "a"), (b"b", "b"), (b"b", None))
    assert fed(dataflow, "orders", (b"a", 1), (b"b", 2)) == [[1, "A"], [2, None]]


def test_a_join_that_is_cut_goes_on_where_it_was() -> None:
    def cutting(order: int, customer: str) -> int:
        if order == 2:
            dataflow.cut()
        return order

    dataflow = flow(DictStore(), "inner", cutting)
    fed(dataflow, "in", (b"a", "A"))
    dataflow.put(Turn.of("orders", batch_of(rows((b"b", 1), (b"a", 2), (b"b", 3), (b"a", 4)))))
    count, outputs = dataflow.advance()
    assert (count, outputs[0].batch.values) == (2, [2])
    assert [row.offset() for row in dataflow.waiting_rows("orders")] == [2, 3]
    assert dataflow.advance()[1][0].batch.values == [4]


def test_how_a_join_takes_what_is_missing_is_one_of_two() -> None:
    with pytest.raises(ConfigurationError, match="how of a join with a table is one of 'inner', 'left', not 'outer'"):
        JoinTable(pair, "customers", "outer")  # type: ignore[arg-type]


def test_a_table_knows_how_many_rows_it_has_at_each_time() -> None:
    dataflow = flow(DictStore())
    assert dataflow.table_rows() == {"customers": 0}
    fed(dataflow, "in", (b"a", "A"), (b"b", "B"), (b"a", "A2"), (b"c", None))
    assert dataflow.table_rows() == {"customers": 2}
    fed(dataflow, "in", (b"a", None), (b"c", "C"), (b"a", "A3"), (b"b", None), (b"d", None))
    assert dataflow.table_rows() == {"customers": 2}
    fed(
        dataflow,
        "in",
        (
            b"a",
            "A",
        ),
        partition=1,
    )
    assert dataflow.table_rows() == {"customers": 3}


def test_rows_are_known_behind_a_restart_with_nothing_at_hand() -> None:
    store = DictStore()
    before = flow(store)
    fed(before, "in", (b"a", "A"), (b"b", "B"), (b"c", "C"))
    before.write_back()
    after = flow(store)
    assert after.table_rows() == {"customers": 3}
    fed(after, "in", (b"a", None), (b"b", "B2"), (b"d", "D"), (b"e", None))
    assert after.table_rows() == {"customers": 3}
    fed(after, "in", (b"b", None), (b"c", None), (b"d", None))
    after.write_back()
    assert flow(store).table_rows() == {"customers": 0}


def test_how_many_rows_there_are_is_not_known_behind_a_checkpoint_of_before() -> None:
    store = DictStore({(CUSTOMERS, 0, b"a"): b'"A"'})
    dataflow = flow(store)
    fed(dataflow, "in", (b"b", "B"))
    assert dataflow.table_rows() == {}
    assert store.reads == [(StateName("customers", ROWS), number, b"") for number in (0, 1)]


def test_a_table_whose_rows_were_dropped_has_none() -> None:
    store = DictStore()
    before = flow(store)
    fed(before, "in", (b"a", "A"))
    before.write_back()
    kept = DictStore({address: value for address, value in store.states.items() if address[0] != CUSTOMERS})
    after = flow(kept)
    assert after.table_rows() == {"customers": 0}
    after.write_back()
    fed(after, "in", (b"b", "B"))
    after.write_back()
    assert flow(kept).table_rows() == {"customers": 1}
