"""stateful_map_records: a state by key for a function that sees whole records, and makes any number of each."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.operators.kit import Chain
from twopc import ConfigurationError, Job, Json, KafkaSink, KafkaSource, Record, Skip, String
from twopc.operators import StatefulMapRecords
from twopc.testing import MemoryRun
from twopc.testing.rows import InputRow, batch_of
from twopc.testing.states import DictStore


def row(key: bytes, value: Any, offset: int, headers: Any = None) -> InputRow:
    return InputRow(value, key_=key, offset_=offset, timestamp_=10 + offset, headers_=headers)


def told(state: int | None, record: Record) -> tuple[int, Any]:
    """Make as many records as the key has had before, each with the number of that; the first time None."""
    seen = state or 0
    if seen == 0:
        return 1, None
    one = record.replace(value=(seen, record.timestamp, record.headers))
    return seen + 1, one if seen == 1 else [one] * seen


def test_none_one_and_several_come_of_a_record_with_its_key_timestamp_and_headers() -> None:
    chain = Chain([StatefulMapRecords(told, "told", Json())], DictStore())
    rows = [row(b"a", 1, 0), row(b"b", 2, 1), row(b"a", 3, 2, [("h", b"1")]), row(b"a", 4, 3)]
    made = chain.process(batch_of(rows))
    assert made.keys == [b"a", b"a", b"a"]
    assert made.values == [(1, 12, [("h", b"1")]), (2, 13, None), (2, 13, None)]
    assert [each.offset() for each in made.rows] == [2, 3, 3]


def halves(state: int | None, record: Record) -> tuple[int, Iterator[Record]]:
    return (state or 0) + 1, (record.replace(value=part) for part in record.value.split(","))


def job_of(function: Any, **more: Any) -> Job:
    job = Job("records")
    stream = job.source(KafkaSource("in", key=String(), value=String()), on_error=Skip())
    stream.stateful_map_records(function, name="state", **more).sink(KafkaSink("out", key=String(), value=String()))
    return job


def test_a_record_on_which_it_goes_wrong_has_changed_no_state_and_made_nothing() -> None:
    def fails(state: int | None, record: Record) -> tuple[int, Iterator[Record]]:
        def parts() -> Iterator[Record]:
            yield record
            assert record.value != "bad"

        return (state or 0) + 1, parts()

    with MemoryRun(job_of(fails)) as run:
        for value in ("good", "bad", "good"):
            run.send("in", value, key="k")
        run.checkpoint()
        assert [record.value for record in run.read("out")] == ["good", "good"]
        assert run.state("state", "k") == 2


def test_state_and_records_are_exact_through_a_crash() -> None:
    with MemoryRun(job_of(halves)) as run:
        for value in ("1,2", "3"):
            run.send("in", value, key="k")
        run.checkpoint()
        run.send("in", "4,5", key="k")
        run.crash()
        run.checkpoint()
        assert [record.value for record in run.read("out")] == ["1", "2", "3", "4", "5"]
        assert run.state("state", "k") == 3


@pytest.mark.parametrize(
    "produced", [7, "text", [1], {"a": 1}], ids=["a number", "text", "what is no record", "an object"]
)
def test_what_is_no_record_goes_wrong(produced: Any) -> None:
    with MemoryRun(job_of(lambda state, record: (1, produced))) as run:
        run.send("in", "v", key="k")
        run.checkpoint()
        assert run.read("out") == []
        assert run.state("state", "k") is None


def moved(state: int | None, record: Record) -> tuple[int, Record]:
    return (state or 0) + 1, record.replace(key=f"{record.key}-new")


def test_state_by_key_follows_where_it_is_said_to_keep_the_key_which_is_checked() -> None:
    follow = Job("follows")
    first = follow.source(KafkaSource("in")).stateful_map_records(halves, name="first")
    with pytest.raises(ConfigurationError, match=r"stateful_map_records.*may change"):
        first.stateful_map(lambda state, value: (1, value), name="second")
    job = Job("keeps")
    source = job.source(KafkaSource("in", key=String(), value=String()), on_error=Skip())
    kept = source.stateful_map_records(lambda n, record: (n, record), name="same", keeps_key=True)
    kept.stateful_map(lambda state, value: ((state or 0) + 1, value), name="second").sink(
        KafkaSink("out", key=String(), value=String())
    )
    assert job.definition().keyed_inputs.keys() == {"same", "second"}
    with MemoryRun(job_of(moved, keeps_key=True)) as run:
        run.send("in", "v", key="k")
        run.checkpoint()
        assert run.read("out") == []
