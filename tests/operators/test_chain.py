from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.operators.kit import Chain
from twopc.errors import UserCodeError
from twopc.operators import (
    Filter,
    FilterRecords,
    FlatMap,
    FlatMapRecords,
    Map,
    MapRecords,
    Peek,
    PeekRecords,
    StatefulMap,
    Step,
)
from twopc.record import Batch, Record
from twopc.serde import Json
from twopc.state.layout import StateName
from twopc.termination import Interrupted, Terminated
from twopc.testing.rows import InputRow, batch_of, batch_of_values
from twopc.testing.states import DictStore


def run(batch: Batch, *steps: Step) -> Batch:
    return Chain(steps, DictStore()).process(batch)


def records(batch: Batch) -> list[tuple[Any, ...]]:
    columns = zip(batch.rows, batch.keys, batch.values, batch.timestamps, batch.headers, strict=True)
    return [(row.partition(), row.offset(), *columns) for row, *columns in columns]


def count(total: int | None, value: int) -> tuple[int | None, int]:
    """A running count that forgets its key whenever it meets a 5."""
    total = (total or 0) + 1
    return (None if value == 5 else total), value * 100 + total


COUNT = StatefulMap(count, "count", Json())


def rekey(record: Record) -> Record:
    stamp = None if record.timestamp is None else record.timestamp + 1
    return record.replace(key=b"%d" % (record.value % 3), timestamp=stamp, headers=[("offset", b"%d" % record.offset)])


def twice_if_odd(record: Record) -> list[Record]:
    return [record, record.replace(value=-record.value)][: record.value % 2 * 2]


def by_record(function: Callable[[Record], list[Record]]) -> Callable[[list[Record], dict[Any, Any]], list[Record]]:
    return lambda every, _: [produced for record in every for produced in function(record)]


def naive_count(every: list[Record], totals: dict[Any, Any]) -> list[Record]:
    produced = []
    for record in every:
        at = (record.topic, record.partition, record.key)
        new, output = count(totals.get(at), record.value)
        totals[at] = new
        produced.append(record.replace(value=output))
    return produced


#: Each step with what it means for one record after the other.
STEPS: list[tuple[Step, Callable[[list[Record], dict[Any, Any]], list[Record]]]] = [
    (Map(lambda value: value + 1), by_record(lambda record: [record.replace(value=record.value + 1)])),
    (Filter(lambda value: value % 3), by_record(lambda record: [record] if record.value % 3 else [])),
    (
        FlatMap(lambda value: range(value % 4)),
        by_record(lambda record: [record.replace(value=value) for value in range(record.value % 4)]),
    ),
    (MapRecords(rekey), by_record(lambda record: [rekey(record)])),
    (FilterRecords(lambda record: record.offset % 2), by_record(lambda record: [record] if record.offset % 2 else [])),
    (FlatMapRecords(twice_if_odd), by_record(twice_if_odd)),
    (Peek(lambda value: value + 1), by_record(lambda record: [record])),
    (PeekRecords(rekey), by_record(lambda record: [record])),
    (COUNT, naive_count),
]
ROWS = st.builds(
    InputRow,
    st.integers(0, 9),
    key_=st.sampled_from([b"a", b"b", b""]),
    partition_=st.integers(0, 1),
    offset_=st.integers(0, 99),
    timestamp_=st.none() | st.integers(0, 5),
    headers_=st.none() | st.just([("h", b"1")]),
)


@settings(deadline=None)
@given(st.lists(st.lists(ROWS, max_size=8), max_size=3), st.lists(st.sampled_from(range(len(STEPS))), max_size=5))
def test_a_chain_of_columns_does_what_its_steps_do_record_by_record(
    batches: list[list[InputRow]], chosen: list[int]
) -> None:
    # Two stateful steps of one name can't be in a job, so only the first is kept.
    chosen = [step for at, step in enumerate(chosen) if STEPS[step][0] is not COUNT or step not in chosen[:at]]
    chain = Chain([STEPS[step][0] for step in chosen], DictStore())
    totals: dict[Any, Any] = {}
    for rows in batches:
        expected = [
            Record(row.key_, row.value_, row.timestamp_, row.headers_, row.topic_, row.partition_, row.offset_)
            for row in rows
        ]
        for step in chosen:
            expected = STEPS[step][1](expected, totals)
        found = records(chain.process(batch_of(rows)))
        assert found == [(r.partition, r.offset, r.key, r.value, r.timestamp, r.headers) for r in expected]


def test_flat_map_gives_each_output_the_key_timestamp_and_headers_of_its_input() -> None:
    row = InputRow(b"x y", key_=b"k", offset_=7, timestamp_=1, headers_=[("h", b"1")])
    assert records(run(batch_of([row]), FlatMap(bytes.split))) == [
        (0, 7, b"k", b"x", 1, [("h", b"1")]),
        (0, 7, b"k", b"y", 1, [("h", b"1")]),
    ]


def test_a_list_that_the_function_uses_again_is_not_shared_between_records() -> None:
    reused: list[int] = []

    def function(value: int) -> list[int]:
        reused[:] = [value]
        return reused

    assert run(batch_of_values(1, 2), FlatMap(function)).values == [1, 2]


def fail_on_three(value: int) -> int:
    if value == 3:
        raise ValueError("three is too many")
    return value


@pytest.mark.parametrize(
    ("step", "named"),
    [
        (Map(fail_on_three), "map(fail_on_three)"),
        (Filter(lambda value: fail_on_three(value) + 1), "filter(lambda at test_chain.py:"),
        (FlatMap(lambda value: (fail_on_three(value) for _ in "x")), "flat_map(lambda at"),
        (MapRecords(lambda r: r.replace(value=fail_on_three(r.value))), "map_records(lambda at"),
        (FilterRecords(lambda record: [fail_on_three(record.value)]), "filter_records(lambda at"),
        (FlatMapRecords(lambda record: [record] * fail_on_three(record.value)), "flat_map_records(lambda at"),
        (Peek(fail_on_three), "peek(fail_on_three)"),
        (PeekRecords(lambda record: fail_on_three(record.value)), "peek_records(lambda at"),
        (StatefulMap(lambda s, v: (s, fail_on_three(v)), "n", Json()), "stateful_map(lambda at"),
    ],
    ids=lambda parameter: parameter if isinstance(parameter, str) else "",
)
def test_an_exception_in_a_user_function_names_record_operator_line_and_cause(step: Step, named: str) -> None:
    # The filter moves rows, so that the index in the column is not the offset.
    batch = batch_of([InputRow(value, key_=b"k", partition_=2, offset_=value + 10) for value in (-1, 1, 2, 3, 4)])
    with pytest.raises(UserCodeError) as caught:
        run(batch, Filter(lambda value: value > 0), step)
    message = str(caught.value)
    assert "record in[2]@13: " in message
    assert named in message
    assert "ValueError: three is too many (test_chain.py:" in message
    assert isinstance(caught.value.__cause__, ValueError)


@pytest.mark.parametrize("raised", [SystemExit(0), KeyboardInterrupt(), GeneratorExit(), StopIteration()])
@pytest.mark.parametrize("step", [Map, Filter, FlatMap, MapRecords, FilterRecords, FlatMapRecords, Peek])
def test_what_ends_a_process_elsewhere_is_an_error_of_the_record_here(
    step: Callable[[Any], Step], raised: BaseException
) -> None:
    def leave(_: Any) -> Any:
        raise raised

    with pytest.raises(UserCodeError, match=rf"record in\[0\]@0: .*{type(raised).__name__}"):
        run(batch_of_values(1, 2), step(leave))


@pytest.mark.parametrize("termination", [Terminated(143), Interrupted()])
def test_the_end_of_the_process_itself_is_no_error_of_a_record(termination: BaseException) -> None:
    def signalled(_: Any) -> Any:
        raise termination

    for step in (Map(signalled), Filter(signalled), StatefulMap(lambda _, value: signalled(value), "s", Json())):
        with pytest.raises(type(termination)):
            run(batch_of([InputRow(1, key_=b"k")]), step)


def test_a_failing_function_is_not_called_a_second_time_to_find_its_record() -> None:
    calls = []

    def fail_once(value: int) -> int:
        calls.append(value)
        return fail_on_three(value)

    with pytest.raises(UserCodeError):
        run(batch_of_values(1, 2, 3, 4), Map(fail_once))
    assert calls == [1, 2, 3]


def test_an_error_on_the_last_record_of_a_batch_names_the_last_record() -> None:
    with pytest.raises(UserCodeError, match=r"in\[0\]@2: map\(bytes.upper\) failed: TypeError"):
        run(batch_of_values(b"a", b"b", 3), Map(bytes.upper))


@pytest.mark.parametrize(
    ("step", "complaint"),
    [
        (FlatMap(lambda value: b"ab"), "must return a list or another iterable, not bytes"),
        (FlatMap(lambda value: None), "must return a list or another iterable, not NoneType"),
        (MapRecords(lambda record: None), "must return a Record, not NoneType"),
        (MapRecords(lambda record: record.value), "must return a Record, not int"),
        (FlatMapRecords(lambda record: [record.value]), "must return a Record, not int"),
        (FlatMapRecords(lambda record: record), "must return a list or another iterable, not Record"),
        (StatefulMap(lambda state, value: value, "n", Json()), r"must return a pair \(new state, value\), not int"),
    ],
)
def test_a_function_that_returns_the_wrong_thing_is_told_what_is_wanted(step: Step, complaint: str) -> None:
    with pytest.raises(UserCodeError, match=complaint):
        run(batch_of([InputRow(1, key_=b"k")]), step)


def test_a_batch_of_which_nothing_is_left_does_not_reach_the_store() -> None:
    class Untouchable(DictStore):
        def get_many(self, state: StateName, partition: int, keys: Sequence[bytes]) -> list[bytes | None]:
            raise AssertionError

    chain = Chain([Filter(lambda value: False), COUNT], Untouchable())
    assert len(chain.process(batch_of_values(1, 2))) == 0
