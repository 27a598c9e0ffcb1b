"""A join of streams by its definition makes what a run's operator makes of the same records, in the same order."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.operators.kit import Node, put_through
from twopc import Json
from twopc.operators import Dataflow
from twopc.operators.sink_output import SinkOutput
from twopc.operators.stream_join_step import JoinStreams
from twopc.testing.rows import InputRow, batch_of
from twopc.testing.states import DictStore
from twopc.verify.plain import plainly

PLACES = st.sampled_from([("a", 0), ("a", 0), ("a", 0), ("b", 0), ("a", 1)])
"""Key and partition number: most records could meet."""

PARTS = st.lists(st.tuples(st.sampled_from(["left", "right"]), PLACES, st.integers(0, 24)), min_size=5, max_size=30)

Parts = list[tuple[str, tuple[str, int], int]]


def fragile(one: Any, other: Any) -> list[Any]:
    """Fail on some pairs, and on some that met none."""
    assert ((one or 0) + (other or 0)) % 7
    return [one, other]


def made_of(parts: Parts, step: JoinStreams, *, plain: bool) -> list[Any]:
    """What comes of records, each of which has its place as its value, and of a drain behind them; and what failed."""
    join = plainly(step) if plain else step
    nodes = [Node("left"), Node("right"), Node("join", ("left", "right"), join), Node("out", ("join",))]
    found: list[Any] = []

    def failed(source: str, error: Any) -> Any:
        found.append(str(error.row.key()))
        return ()

    flow = Dataflow(nodes, DictStore(), failed, (0, 1))
    for value, (source, (key, number), stamp) in enumerate(parts, 1):
        row = InputRow(value, key_=key, partition_=number, timestamp_=stamp)
        found += told(put_through(flow, source, batch_of([row])))
    return found + told(flow.drain(["left", "right"]))


def told(outputs: Iterable[SinkOutput]) -> list[Any]:
    batches = [each.batch for each in outputs]
    return [row for each in batches for row in zip(each.keys, each.values, each.timestamps, strict=True)]


@given(PARTS, st.sampled_from(["inner", "left", "outer"]), st.sampled_from([0, 1, 7]))
def test_every_output_is_the_same_record_by_record(parts: Parts, how: Any, grace_ms: int) -> None:
    step = JoinStreams(fragile, how, 10, grace_ms, "join", (Json(), Json()))
    assert made_of(parts, step, plain=True) == made_of(parts, step, plain=False)
