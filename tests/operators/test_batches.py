"""map_batches: vectorised functions on Arrow batches."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import date
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from tests.operators.kit import Chain, put_through, row
from twopc.arrow import to_column
from twopc.errors import UserCodeError
from twopc.operators import MapBatches, SinkOutput
from twopc.operators.batches import COLUMNS, BatchMap, as_arrow
from twopc.operators.own_arrow_type import OwnTypes
from twopc.record import Batch, RecordError
from twopc.serde import Json
from twopc.testing.rows import InputRow
from twopc.testing.states import DictStore

Function = Callable[[pa.RecordBatch], pa.RecordBatch]


def rows(count: int) -> list[InputRow]:
    return [InputRow(b"v%d" % number, b"k%d" % number, offset_=number) for number in range(count)]


def batch_of_bytes(count: int = 4) -> Batch:
    made = rows(count)
    return Batch(made, [row.value() for row in made])


def run(function: Function, batch: Batch, value_type: pa.DataType | None = None) -> Batch:
    return Chain([MapBatches(function, None, value_type)], DictStore()).process(batch)


def upper(batch: pa.RecordBatch) -> pa.RecordBatch:
    values = pc.utf8_upper(batch.column("value").cast(pa.string())).cast(pa.binary())
    return batch.set_column(1, "value", values)


def test_the_function_sees_keys_values_timestamps_and_rows() -> None:
    seen: list[pa.RecordBatch] = []

    def look(batch: pa.RecordBatch) -> pa.RecordBatch:
        seen.append(batch)
        return batch

    run(look, batch_of_bytes(2))
    assert seen[0].schema.names == list(COLUMNS)
    assert seen[0].column("key").to_pylist() == [b"k0", b"k1"]
    assert seen[0].column("row").to_pylist() == [0, 1]


def test_values_of_plain_bytes_are_replaced() -> None:
    produced = run(upper, batch_of_bytes(2))
    assert produced.values == [b"V0", b"V1"]
    assert produced.keys == [b"k0", b"k1"]


def test_values_decoded_from_json_come_as_structs_and_go_back_as_objects() -> None:
    made = rows(3)
    batch = Batch(made, Json().deserialize_all([b'{"a":1}', b'{"a":2,"b":"x"}', b'{"a":3}']))
    sizes: list[int] = []

    def add(arrow: pa.RecordBatch) -> pa.RecordBatch:
        values = arrow.column("value")
        sizes.append(len(values))
        sums = pa.StructArray.from_arrays([pc.add(pc.struct_field(values, "a"), 10)], ["sum"])
        return pa.RecordBatch.from_arrays([sums], ["value"])

    assert run(add, batch).values == [{"sum": 11}, {"sum": 12}, {"sum": 13}]
    assert sizes == [1, 1, 1], "no object gets a field of another"


def test_filtering_keeps_each_record_with_its_own_row() -> None:
    def odd(arrow: pa.RecordBatch) -> pa.RecordBatch:
        return arrow.filter(pc.equal(pc.bit_wise_and(arrow.column("row"), 1), 1))

    produced = run(odd, batch_of_bytes(4))
    assert produced.values == [b"v1", b"v3"]
    assert [row.offset() for row in produced.rows] == [1, 3]


def test_a_record_may_become_several() -> None:
    produced = run(lambda arrow: arrow.take(pa.array([0, 0, 1])), batch_of_bytes(2))
    assert produced.values == [b"v0", b"v0", b"v1"]
    assert produced.keys == [b"k0", b"k0", b"k1"]


def test_columns_that_are_left_out_stay_as_they_were() -> None:
    produced = run(lambda arrow: pa.RecordBatch.from_arrays([arrow.column("value")], ["value"]), batch_of_bytes(2))
    assert produced.keys == [b"k0", b"k1"]


def test_a_batch_that_is_emptied_stays_empty() -> None:
    assert len(run(lambda arrow: arrow.slice(0, 0), batch_of_bytes(2))) == 0


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (lambda arrow: arrow.to_pylist(), "must return a pyarrow.RecordBatch, not list"),
        (lambda arrow: arrow.select(["key"]), "returned no column 'value'"),
        (lambda arrow: arrow.append_column("extra", arrow.column("value")), "a column 'extra'"),
        (lambda arrow: arrow.select(["value"]).slice(1), "returned 3 records for 4"),
        (lambda arrow: arrow.take(pa.array([1, 0])), "must not decrease"),
        (
            lambda arrow: arrow.set_column(3, "row", pa.array([0, 1, 2, 9], pa.int32())),
            "must name input records, 0 to 3",
        ),
    ],
    ids=["a list", "no values", "a strange column", "too few", "out of order", "no such row"],
)
def test_what_goes_wrong_names_the_records_and_the_cause(function: Function, said: str) -> None:
    with pytest.raises(UserCodeError) as caught:
        run(function, batch_of_bytes(4))
    assert said in str(caught.value)
    assert "@0 to " in str(caught.value)


def test_what_the_function_raises_names_the_line_of_the_users_file() -> None:
    def fail(batch: pa.RecordBatch) -> pa.RecordBatch:
        raise ValueError("as arranged")

    line = fail.__code__.co_firstlineno + 1
    with pytest.raises(UserCodeError, match=rf"ValueError: as arranged \(test_batches.py:{line}\)\. Correct"):
        run(fail, batch_of_bytes())


def test_records_of_one_call_have_the_type_that_each_has_by_itself() -> None:
    values: list[Any] = [
        1,
        2,
        2.5,
        None,
        b"x",
        "text",
        {"a": 1},
        {"a": 2},
        {"a": 0.5},
        {},
        [1],
        [1, 2.0],
        date(2026, 1, 2),
    ]
    seen: list[tuple[Any, int]] = []

    def look(batch: pa.RecordBatch) -> pa.RecordBatch:
        seen.append((batch.column("value").type, batch.num_rows))
        return batch

    assert list(map(repr, run(look, Batch(rows(len(values)), values)).values)) == list(
        map(repr, [*values[:11], [1.0, 2.0], values[12]])
    )
    assert seen == [
        *((pa.int64(), 2), (pa.float64(), 1), (pa.binary(), 2), (pa.string(), 1)),
        *((pa.struct([("a", pa.int64())]), 2), (pa.struct([("a", pa.float64())]), 1), (pa.struct([]), 1)),
        *((pa.list_(pa.int64()), 1), (pa.list_(pa.float64()), 1), (pa.date32(), 1)),
    ]


def test_what_has_no_arrow_type_is_an_error_of_the_record_that_asks_for_one() -> None:
    values = [1, 2, object(), 3, [1, "one"], 4]
    assert went(lambda arrow: arrow, Batch(rows(6), values)) == ([1, 2, 3, 4], [2, 4])
    with pytest.raises(UserCodeError, match=r"@2: .*object has no Arrow type of its own .*value_type="):
        run(lambda arrow: arrow, Batch(rows(6), values))


@pytest.mark.parametrize(
    "wanted", [pa.binary(), pa.large_binary(), pa.string(), pa.large_string(), pa.int64(), pa.binary(2), pa.float32()]
)
@pytest.mark.parametrize("values", [[b"12", None, b"34"], [b"12", b"\xff\xff"], [b""]])
def test_bytes_have_a_given_type_or_none_whether_they_are_packed_or_not(
    wanted: pa.DataType, values: list[bytes | None]
) -> None:
    def column(values: Any) -> pa.Array | None:
        try:
            return as_arrow(
                MapBatches(lambda batch: batch, None, wanted), Batch(rows(len(values)), values), OwnTypes()
            )["value"]
        except (pa.ArrowException, TypeError, UnicodeDecodeError):
            return None

    assert column(to_column(pa.array(values, pa.binary()))) == column(values)


def test_a_type_that_is_given_is_the_type_of_every_batch() -> None:
    wanted = pa.struct([("a", pa.int64()), ("b", pa.string())])
    produced = run(lambda arrow: arrow, Batch(rows(1), [{"a": 1}]), wanted)
    assert produced.values == [{"a": 1, "b": None}]


def test_where_types_change_all_the_time_no_value_is_looked_at_more_than_a_few_times() -> None:
    looked_at = 0

    class Counting(OwnTypes):
        def first_run(self, values: Sequence[Any]) -> tuple[pa.DataType, int]:
            nonlocal looked_at
            looked_at += len(values)
            return super().first_run(values)

    count = 500
    values = [number if number % 2 else {"a": number} for number in range(count)]
    batch, step = Batch(rows(count), values, [b"k"] * count), BatchMap(MapBatches(lambda arrow: arrow))
    step._types = Counting()
    assert step.process(batch, lambda column: iter(range(len(column)))).batch.values == values
    assert looked_at < 2 * 5 * count


class Halves:
    """Fails on some values; notes how many rows it was given each time."""

    def __init__(self, *bad: bytes) -> None:
        self.bad = set(bad)
        self.sizes: list[int] = []

    def __call__(self, arrow: pa.RecordBatch) -> pa.RecordBatch:
        self.sizes.append(arrow.num_rows)
        if self.bad & set(arrow.column("value").to_pylist()):
            raise LookupError("bad")
        return arrow.filter(pc.equal(pc.bit_wise_and(arrow.column("row"), 0), 0))


def went(function: Function, batch: Batch, value_type: pa.DataType | None = None) -> tuple[list[Any], list[int | None]]:
    """Return the values that come out, and where the records are that go wrong."""
    bad: list[int | None] = []

    def refuse(source: str, error: RecordError) -> list[SinkOutput]:
        bad.append(error.row.offset())
        return []

    flow = row([MapBatches(function, None, value_type)], DictStore(), refuse)
    return [value for output in put_through(flow, "in", batch) for value in output.batch.values], bad


def test_the_record_that_a_batch_fails_on_is_found_and_the_others_go_on_in_their_order() -> None:
    function = Halves(b"v5", b"v6", b"v13")
    values, bad = went(function, batch_of_bytes(16))
    assert bad == [5, 6, 13]
    assert values == [b"v%d" % number for number in range(16) if number not in bad]
    assert function.sizes[:4] == [16, 8, 4, 8]


def test_where_every_record_fails_each_costs_one_call_and_behind_them_parts_grow_again() -> None:
    function = Halves(*(b"v%d" % number for number in range(100)))
    went(function, batch_of_bytes(100))
    assert len(function.sizes) <= 100 + 7
    function = Halves(b"v0")
    went(function, batch_of_bytes(1_000))
    assert len(function.sizes) < 2 * 11


def test_an_error_names_the_record_that_the_function_fails_on() -> None:
    with pytest.raises(UserCodeError, match=r"record in\[0\]@5: map_batches\(.*LookupError: bad"):
        run(Halves(b"v5"), batch_of_bytes(8))


def test_a_value_that_is_not_of_the_type_that_was_given_is_an_error_of_its_record() -> None:
    assert went(lambda arrow: arrow, Batch(rows(3), [1, "one", 3]), pa.int64()) == ([1, 3], [1])
