"""Windows by their definitions make what a run's operator makes of the same records, in the same order."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.operators.window_kit import WindowHarness, at
from twopc import Hopping, Json, Session, Sliding, Tumbling
from twopc.operators.window_step import Aggregate, Aggregation, Collect, Count, Reduce, Sum
from twopc.state.forms import ListOf
from twopc.windows import Windows

KINDS: list[Windows] = [
    Tumbling("10ms"),
    Tumbling("10ms", offset="3ms"),
    Hopping("12ms", every="4ms"),
    Session(gap="6ms"),
    Sliding("8ms"),
]
AGGREGATIONS: list[tuple[Aggregation, Any]] = [
    (Count(), Json()),
    (Sum(), Json()),
    (Collect(), ListOf(Json())),
    (Reduce(lambda so_far, value: [so_far, value]), Json()),
    (Aggregate([], lambda so_far, value: [*so_far, value], lambda one, other: [*one, "|", *other]), Json()),
]
PARTS = st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 60), st.integers(0, 1)), max_size=40)


@given(
    PARTS,
    st.sampled_from(KINDS),
    st.sampled_from(AGGREGATIONS),
    st.sampled_from([0, 1, 7, 100]),
    st.lists(st.integers(1, 9), max_size=12),
)
def test_every_output_is_the_same_record_by_record(
    parts: list[tuple[str, int, int]], kind: Windows, what: tuple[Aggregation, Any], grace_ms: int, sizes: list[int]
) -> None:
    rows = [
        row
        for index, (key, stamp, partition) in enumerate(parts)
        for row in at((key, stamp), value=index, partition=partition)
    ]
    rows += [row for partition in (0, 1) for row in at(("z", 9_999), value=0, partition=partition)]
    aggregation, serde = what
    told = WindowHarness(kind, aggregation, grace_ms=grace_ms, serde=serde).put(rows, sizes)
    plain = WindowHarness(kind, aggregation, grace_ms=grace_ms, serde=serde, plain=True).put(rows)
    assert {name: [row for row in each if row[0] != "z"] for name, each in told.items()} == {
        name: [row for row in each if row[0] != "z"] for name, each in plain.items()
    }
