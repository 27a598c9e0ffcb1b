"""What a sink is given, and which run of a query each batch belongs to; no JVM, no broker."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame

from twopc.arrow import to_column
from twopc.errors import ConfigurationError, UserCodeError
from twopc.packed_column import PackedColumn
from twopc.spark.streaming import kafka_sink, sink
from twopc.spark.streaming.observer import Observer
from twopc.spark.streaming.rows import BatchRows, records_of


class FakeRun:
    """Stands for a QueryRun: fails for the batches that it is told to."""

    made: list[FakeRun]
    failing: set[int]

    def __init__(self, options: Any, query: str, config: Any, observer: Any) -> None:
        self.query = query
        self.config = config
        self.next_batch: int | None = None
        self.batches: list[int] = []
        self.closed = False
        self.made.append(self)

    def do(self, batch: int, steps: Any, compute: Any) -> None:
        self.batches.append(batch)
        if batch in self.failing:
            raise ConfigurationError("a step failed")
        self.next_batch = batch + 1

    def close(self) -> None:
        self.closed = True


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> list[FakeRun]:
    FakeRun.made, FakeRun.failing = [], set()
    monkeypatch.setattr(sink, "QueryRun", FakeRun)
    monkeypatch.setattr(sink, "claimed", lambda options: options)
    return FakeRun.made


@pytest.fixture
def written(tmp_path: Path) -> sink.KafkaBatchSink:
    return kafka_sink("out", name="out", decisions=str(tmp_path), bootstrap_servers="127.0.0.1:1")


def frame_of(query: str | None) -> DataFrame:
    context = SimpleNamespace(getLocalProperty=lambda name: query)
    return cast(DataFrame, SimpleNamespace(sparkSession=SimpleNamespace(sparkContext=context)))


def test_batches_that_follow_each_other_are_of_one_run(runs: list[FakeRun], written: sink.KafkaBatchSink) -> None:
    for batch in (4, 5, 6):
        written(frame_of("q"), batch)
    assert [run.batches for run in runs] == [[4, 5, 6]]


@pytest.mark.parametrize("again", [4, 5, 7], ids=["an earlier batch", "the same batch", "a later batch"])
def test_a_query_that_was_started_again_begins_a_run(
    runs: list[FakeRun], written: sink.KafkaBatchSink, again: int
) -> None:
    written(frame_of("q"), 5)
    written(frame_of("q"), again)
    assert [(run.batches, run.closed) for run in runs] == [([5], True), ([again], False)]


def test_a_batch_that_failed_ends_its_run(runs: list[FakeRun], written: sink.KafkaBatchSink) -> None:
    FakeRun.failing = {1}
    written(frame_of("q"), 0)
    with pytest.raises(ConfigurationError):
        written(frame_of("q"), 1)
    FakeRun.failing = set()
    written(frame_of("q"), 1)
    assert [(run.batches, run.closed) for run in runs] == [([0, 1], True), ([1], False)]


def test_whoever_observes_hears_of_a_batch_that_failed(runs: list[FakeRun], written: sink.KafkaBatchSink) -> None:
    heard: list[str] = []

    class Heard(Observer):
        def failed(self) -> None:
            heard.append("failed")

    observed = sink.KafkaBatchSink(written._options, Heard())
    FakeRun.failing = {1}
    observed(frame_of("q"), 0)
    with pytest.raises(ConfigurationError):
        observed(frame_of("q"), 1)
    assert heard == ["failed"]


def test_another_query_has_a_run_of_its_own(runs: list[FakeRun], written: sink.KafkaBatchSink) -> None:
    written(frame_of("q"), 0)
    written(frame_of("other"), 1)
    assert [run.query for run in runs] == ["q", "other"]


def test_a_frame_that_is_no_batch_of_a_streaming_query_is_refused(
    runs: list[FakeRun], written: sink.KafkaBatchSink
) -> None:
    with pytest.raises(ConfigurationError, match="streaming queries only"):
        written(frame_of(None), 0)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"name": "a/b"}, "name of the sink 'a/b'"),
        ({"bootstrap_servers": ""}, "needs bootstrap_servers"),
        ({"topic": ""}, "needs the name of a topic"),
        ({"first_batch": -1}, "first_batch of the sink"),
        ({"transaction_timeout": "long"}, "transaction_timeout of the sink: 'long' is not a duration"),
        ({"decisions": "ftp://host/decisions"}, "can't be kept in"),
        ({"properties": {"acks": "1"}}, "can't take the property 'acks'"),
    ],
    ids=lambda each: next(iter(each)) if isinstance(each, dict) else "",
)
def test_a_wrong_setting_is_refused_by_name(wrong: dict[str, Any], said: str, tmp_path: Path) -> None:
    settings = {"topic": "out", "name": "out", "decisions": str(tmp_path), "bootstrap_servers": "127.0.0.1:1"}
    with pytest.raises(ConfigurationError, match=said):
        kafka_sink(**(settings | wrong))


def test_rows_go_to_the_topics_that_they_name_in_their_order() -> None:
    columns: dict[str, list[Any]] = {"value": [b"1", b"2", b"3"], "key": [b"a", None, b"c"], "topic": ["x", "y", "x"]}
    made = dict(records_of(columns, None, BatchRows(7, 0, range(3))))
    assert {topic: batch.values for topic, batch in made.items()} == {"x": [b"1", b"3"], "y": [b"2"]}
    assert made["x"].keys == [b"a", b"c"]


def test_headers_and_timestamps_are_those_of_the_rows() -> None:
    headers = [[{"key": "h", "value": b"1"}], None]
    columns: dict[str, list[Any]] = {"value": [b"1", b"2"], "headers": headers, "timestamp": [5, 6]}
    [(_, batch)] = records_of(columns, "out", BatchRows(7, 0, range(2)))
    assert batch.headers == [[("h", b"1")], None]
    assert batch.timestamps == [5, 6]


def test_keys_and_values_stay_as_arrow_has_them_on_their_way_to_one_topic() -> None:
    columns = {"value": to_column(pa.array([b"1", None])), "key": to_column(pa.array([b"a", b"b"]))}
    [(_, batch)] = records_of(columns, "out", BatchRows(7, 0, range(2)))
    assert (batch.value_column, batch.key_column) == (columns["value"], columns["key"])
    assert isinstance(batch.value_column, PackedColumn)


def test_a_row_that_names_no_topic_is_named_by_its_batch_and_place() -> None:
    columns: dict[str, list[Any]] = {"value": [b"1", b"2"], "topic": ["x", None]}
    with pytest.raises(UserCodeError, match=r"record of batch 7\[3\]@11 says no topic"):
        list(records_of(columns, None, BatchRows(7, 3, range(10, 12))))
