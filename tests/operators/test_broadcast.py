"""A broadcast table on one subtask: what a join finds in it, by which key, and what a failure leaves behind."""

from __future__ import annotations

from typing import Any

import pytest

from tests.operators.kit import Node, put_through
from twopc import ConfigurationError, Json
from twopc.operators import Dataflow, JoinBroadcast, KeepBroadcast, StatefulMap
from twopc.operators.broadcast import BroadcastTable
from twopc.operators.sink_output import OnError, SinkOutput, fail
from twopc.record import RecordError
from twopc.testing.rows import InputRow, batch_of
from twopc.testing.states import DictStore


def pair(order: Any, product: Any) -> list[Any]:
    return [order, product]


class Flows:
    """The dataflow that fills the table, and that of the job, which looks into it."""

    def __init__(self, join: JoinBroadcast, on_error: OnError = fail) -> None:
        step = KeepBroadcast("products", Json())
        tables = {"products": BroadcastTable(step)}
        nodes = [Node("in"), Node("products", ("in",), step)]
        self._filling = Dataflow(nodes, DictStore(), on_error, tables=tables)
        self._joining = Dataflow(
            [
                Node("orders"),
                Node("join", ("orders", "products"), join),
                Node("count", ("join",), StatefulMap(lambda state, value: ((state or 0) + 1, value), "count", Json())),
                Node("out", ("count",)),
            ],
            DictStore(),
            on_error,
            tables=tables,
        )

    def products(self, *parts: tuple[Any, Any]) -> None:
        assert put_through(self._filling, "in", batch_of(rows(*parts))) == []

    def orders(self, *parts: tuple[Any, Any]) -> list[Any]:
        outputs = put_through(self._joining, "orders", batch_of(rows(*parts)))
        return [value for output in outputs for value in output.batch.values]


def rows(*parts: tuple[Any, Any]) -> list[InputRow]:
    return [InputRow(value, key_=key, partition_=0, offset_=offset) for offset, (key, value) in enumerate(parts)]


def test_a_record_meets_what_the_table_has_for_its_key_just_now() -> None:
    flows = Flows(JoinBroadcast(pair, "products", "left"))
    flows.products((b"a", "A"), (b"b", "B"), (b"a", "A2"))
    assert flows.orders((b"a", 1), (b"b", 2), (b"c", 3)) == [[1, "A2"], [2, "B"], [3, None]]
    flows.products((b"a", "A3"), (b"b", None), (b"c", None))
    assert flows.orders((b"a", 4), (b"b", 5)) == [[4, "A3"], [5, None]]


def test_what_is_looked_up_is_what_the_key_function_makes_of_the_value() -> None:
    flows = Flows(JoinBroadcast(pair, "products", "inner", lambda order: order["product"]))
    flows.products(("p1", "pen"), ("p2", "ink"))
    found = flows.orders((b"a", {"product": "p2"}), (b"b", {"product": "p9"}), (b"a", {"product": "p1"}))
    assert found == [[{"product": "p2"}, "ink"], [{"product": "p1"}, "pen"]]


def test_for_the_key_none_there_is_nothing() -> None:
    flows = Flows(JoinBroadcast(pair, "products", "left", lambda order: None))
    flows.products((b"a", "A"))
    assert flows.orders((b"a", 1)) == [[1, None]]


def test_keys_are_alike_as_those_of_states_are() -> None:
    flows = Flows(JoinBroadcast(pair, "products", "inner", lambda order: order))
    flows.products(("a", "text"), (1, "number"), ({"x": 1, "y": 2}, "object"), (True, "true"))
    found = flows.orders(*((b"k", key) for key in (b"a", "a", 1, "1", True, {"y": 2, "x": 1})))
    assert [other for _, other in found] == ["text", "text", "number", "true", "object"]


def test_what_a_function_changes_in_place_reaches_no_other_record() -> None:
    def spoilt(order: int, product: dict[str, int]) -> int:
        product["n"] += 1
        return product["n"]

    flows = Flows(JoinBroadcast(spoilt, "products", "inner"))
    flows.products((b"a", {"n": 1}))
    assert flows.orders((b"a", 1), (b"a", 2)) == [2, 2]


@pytest.mark.parametrize("broken", ["function", "key"])
def test_a_record_on_which_a_function_raises_is_left_out_alone(broken: str) -> None:
    lost: list[RecordError] = []

    def note(source: str, error: RecordError) -> list[SinkOutput]:
        lost.append(error)
        return []

    def inverse(order: int) -> bytes:
        return b"a" if 6 // order else b"b"

    def divided(order: int, product: int) -> float:
        return product / order

    join = (
        JoinBroadcast(divided, "products", "inner")
        if broken == "function"
        else JoinBroadcast(lambda order, product: product / (order or 1), "products", "inner", inverse)
    )
    flows = Flows(join, note)
    flows.products((b"a", 6))
    assert flows.orders((b"a", 1), (b"a", 0), (b"a", 3)) == [6, 2]
    assert [(error.row.offset(), type(error.cause)) for error in lost] == [(1, ZeroDivisionError)]


def test_a_record_of_the_table_without_a_key_goes_wrong_alone() -> None:
    lost: list[RecordError] = []

    def note(source: str, error: RecordError) -> list[SinkOutput]:
        lost.append(error)
        return []

    flows = Flows(JoinBroadcast(pair, "products", "inner"), note)
    flows.products((b"a", "A"), (None, "B"), (b"c", "C"))
    assert flows.orders((b"a", 1), (b"c", 2)) == [[1, "A"], [2, "C"]]
    assert ["the record has no key" in str(error.cause) for error in lost] == [True]


def test_what_is_no_join_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="key of a join is a function of the value, not str"):
        JoinBroadcast(pair, "products", "left", "product")  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match="how of a join with a table is one of 'inner', 'left', not 'outer'"):
        JoinBroadcast(pair, "products", "outer")  # type: ignore[arg-type]
