"""Columns that nobody asks for as objects go from one topic to another as Arrow has them, with the same results."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from typing import Any, cast

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.kafka.native.kit import RECORDS, Reading, Seen, by_objects, write
from tests.operators.kit import Chain
from twopc.arrow import to_column
from twopc.kafka.clients.client_config import producer_config
from twopc.kafka.input.fetching import ColumnFetching, Fetching, MessageFetching
from twopc.kafka.input.read_rows import ReadRows
from twopc.kafka.output.handover import ClientColumns, handover
from twopc.kafka.output.topic_output import TopicOutput
from twopc.kafka.output.tracked_producer import TrackedProducer
from twopc.kafka.topic_serdes import TopicSerdes
from twopc.kafka.topics.output_topics import BrokerTopics
from twopc.operators import Filter, MapBatches
from twopc.packed_column import Buffers, PackedColumn
from twopc.record import Batch, RecordsRefused
from twopc.serde import BYTES
from twopc.testing.states import DictStore

NewTopic = Callable[[], str]
Function = Callable[[pa.RecordBatch], pa.RecordBatch]


def as_it_is(batch: pa.RecordBatch) -> pa.RecordBatch:
    return batch


def doubled(batch: pa.RecordBatch) -> pa.RecordBatch:
    value = batch.column("value")
    if not pa.types.is_binary(value.type):
        return batch
    return batch.set_column(1, "value", pc.binary_join_element_wise(value, value, b""))


def those_with_a_value(batch: pa.RecordBatch) -> pa.RecordBatch:
    return batch.filter(pc.is_valid(batch.column("value")))


def keyed_by_value(batch: pa.RecordBatch) -> pa.RecordBatch:
    return batch.set_column(0, "key", batch.column("value"))


def later(batch: pa.RecordBatch) -> pa.RecordBatch:
    return batch.set_column(2, "timestamp", pc.add(batch.column("timestamp"), 1))


def only_values(batch: pa.RecordBatch) -> pa.RecordBatch:
    return batch.select(["value"])


TRIES = 20
FEW_AT_A_TIME = {"log_level": 0, "queue.buffering.max.messages": 10, "batch.num.messages": 10}

FUNCTIONS: list[Function] = [as_it_is, doubled, those_with_a_value, keyed_by_value, later, only_values]


def batches(servers: str, topic: str, fetching: Fetching, most: int = 50) -> Iterator[Batch]:
    """Yield the batches of a topic as a source has them."""
    reading = Reading(servers, topic, fetching)
    try:
        with TopicSerdes(BYTES, BYTES, [topic]) as serdes:
            for rows in reading.batches(most):
                yield fetching.decoded(rows, serdes)
    finally:
        reading.close()


def only_batch(servers: str, topic: str, compiled: Any) -> Batch:
    """Return all records of a topic as one batch: read again where they came in several."""
    for _ in range(TRIES):
        read = list(batches(servers, topic, ColumnFetching(compiled.Reader())))
        if len(read) == 1:
            return read[0]
    raise AssertionError(f"all records of {topic} never came at once: {[len(batch.values) for batch in read]}")


def copied(servers: str, source: str, target: str, fetching: Fetching, function: Function) -> None:
    """Have a job of one `map_batches` write one topic into another."""
    chain = Chain([MapBatches(function)], DictStore())
    write_all(servers, target, (chain.process(batch) for batch in batches(servers, source, fetching)))


def write_all(servers: str, target: str, made: Iterator[Batch]) -> None:
    producer = TrackedProducer(producer_config(servers, {}) | {"log_level": 0})
    topics = BrokerTopics(cast(Any, None), cast(Any, None), {})
    topics.ids[target], topics.partitions[target] = "id", 4
    output = TopicOutput(target, "source", BYTES, BYTES, topics)
    for batch in made:
        output.write(producer, batch)
    assert producer.flush(30) == 0


def contents(servers: str, topic: str) -> list[tuple[Any, ...]]:
    """Return what is in a topic but for the places, which follow how batches were cut."""
    found: Seen = by_objects(servers, topic)[0]
    return [(place, *row[1:]) for place, row in sorted(found.items())]


@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(records=RECORDS, function=st.sampled_from(FUNCTIONS))
def test_a_batch_of_arrow_is_the_same_on_both_paths_and_so_is_what_is_made_of_it(
    mock_servers: str, new_topic: NewTopic, compiled: Any, function: Function, records: list[tuple[Any, ...]]
) -> None:
    source, by_column, by_object = new_topic(), new_topic(), new_topic()
    write(mock_servers, source, records)
    seen: dict[str, list[pa.RecordBatch]] = {"columns": [], "objects": []}

    def watched(path: str) -> Function:
        def call(batch: pa.RecordBatch) -> pa.RecordBatch:
            batch.validate(full=True)
            seen[path].append(batch.select(["key", "value", "timestamp"]))
            return function(batch)

        return call

    copied(mock_servers, source, by_column, ColumnFetching(compiled.Reader()), watched("columns"))
    copied(mock_servers, source, by_object, MessageFetching(), watched("objects"))
    assert contents(mock_servers, by_column) == contents(mock_servers, by_object)
    rows = {
        path: sorted(map(repr, (row for each in found for row in each.to_pylist()))) for path, found in seen.items()
    }
    assert rows["columns"] == rows["objects"]


@pytest.fixture
def source(mock_servers: str, new_topic: NewTopic) -> str:
    """A topic with records of every kind, in one partition."""
    made = new_topic()
    texts = [b"a", None, b"", "ä".encode(), b"xyz"]
    write(mock_servers, made, [(text, text and text + b"!", 1_000 + at, 0, None) for at, text in enumerate(texts)])
    return made


@pytest.fixture
def only_values_as_objects(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let nobody have a key or a timestamp as an object."""
    for column in ("keys", "timestamps"):
        monkeypatch.setattr(ReadRows, column, refuse)


@pytest.fixture
def without_objects(monkeypatch: pytest.MonkeyPatch, only_values_as_objects: None) -> None:
    """Let nobody have a key, value or timestamp as an object."""
    monkeypatch.setattr(ReadRows, "values", refuse)


def refuse(rows: ReadRows) -> Any:
    raise AssertionError("an object was made for each record")


def test_no_object_is_made_of_columns_that_a_vectorised_function_passes_on(
    mock_servers: str, new_topic: NewTopic, compiled: Any, source: str, without_objects: None
) -> None:
    target = new_topic()
    copied(mock_servers, source, target, ColumnFetching(compiled.Reader()), doubled)
    expected = [(place, key, value and value * 2, *rest) for place, key, value, *rest in contents(mock_servers, source)]
    assert contents(mock_servers, target) == expected


def test_a_key_that_nobody_reads_never_becomes_an_object(
    mock_servers: str, new_topic: NewTopic, compiled: Any, source: str, only_values_as_objects: None
) -> None:
    target = new_topic()
    read = batches(mock_servers, source, ColumnFetching(compiled.Reader()))
    write_all(mock_servers, target, (batch.with_values([value or b"none" for value in batch.values]) for batch in read))
    expected = [(place, key, value or b"none", *rest) for place, key, value, *rest in contents(mock_servers, source)]
    assert contents(mock_servers, target) == expected


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_the_records_that_are_left_of_a_batch_are_packed_too(
    compiled: Any, mock_servers: str, source: str, data: st.DataObject
) -> None:
    batch = only_batch(mock_servers, source, compiled)
    rows = cast(ReadRows, batch.rows)
    indices = data.draw(st.lists(st.integers(0, len(rows) - 1), max_size=12))
    left = rows.take(indices)
    for packed, objects, all_objects in (
        (left.packed_keys(), left.keys(), rows.keys()),
        (left.packed_values(), left.values(), rows.values()),
        (left.packed_timestamps(), left.timestamps(), rows.timestamps()),
    ):
        assert objects == [all_objects[index] for index in indices]
        if packed is None:
            assert set(objects) <= {None}
        else:
            assert [packed.raw(index) for index in range(len(packed))] == objects == list(packed)


@pytest.mark.parametrize("indices", [[5], [-1], ["0"], [0, None], (0,)])
def test_a_record_that_is_not_there_is_refused(compiled: Any, mock_servers: str, source: str, indices: Any) -> None:
    batch = only_batch(mock_servers, source, compiled)
    records: Any = cast(ReadRows, batch.rows)._records
    for column in ("keys", "values", "times", "places", "packed_keys", "packed_values", "packed_times"):
        with pytest.raises((IndexError, TypeError)):
            getattr(records, column)(indices)


def test_what_a_filter_leaves_has_no_key_and_no_timestamp_as_an_object(
    mock_servers: str, new_topic: NewTopic, compiled: Any, source: str, only_values_as_objects: None
) -> None:
    target = new_topic()
    chain = Chain([Filter(bool)], DictStore())
    read = batches(mock_servers, source, ColumnFetching(compiled.Reader()))
    write_all(mock_servers, target, (chain.process(batch) for batch in read))
    kept = [row[1:] for row in contents(mock_servers, source) if row[2]]
    assert [row[1:] for row in contents(mock_servers, target)] == kept


def test_a_part_of_a_packed_column_has_its_elements(compiled: Any, mock_servers: str, source: str) -> None:
    batch = only_batch(mock_servers, source, compiled)
    values = batch.value_column
    assert isinstance(values, PackedColumn)
    assert values.size() == 6
    assert (values[1:4].size(), list(values[1:4]), len(values[1:4])) == (2, [None, b"", "ä".encode()], 3)
    assert list(values[1:4][1:]) == [b"", "ä".encode()]
    assert list(values[4:2]) == []


def test_one_element_is_had_without_the_others(compiled: Any, mock_servers: str, source: str) -> None:
    batch = only_batch(mock_servers, source, compiled)
    for column in (batch.key_column, batch.value_column, batch.timestamp_column):
        assert isinstance(column, PackedColumn)
        for part in (column, column[1:4]):
            assert [part.raw(index) for index in range(len(part))] == list(part)


def test_no_column_becomes_objects_where_the_queue_is_full(
    mock_servers: str, new_topic: NewTopic, compiled: Any
) -> None:
    def refuse() -> list[Any]:
        raise AssertionError("an object was made for each record")

    producer, topic = TrackedProducer(producer_config(mock_servers, {}) | FEW_AT_A_TIME), new_topic()
    producer.know(topic)
    texts = pa.array([f"ä{number}" if number % 3 else None for number in range(200)]).slice(1)
    column = to_column(texts)
    assert isinstance(column, PackedColumn)
    packed = PackedColumn(column.buffers, refuse)
    stamps = PackedColumn(Buffers(199, 0, None, None, struct.pack("=199q", *range(1, 200))), refuse)
    handover(producer, topic, ClientColumns(packed, packed, [0] * 199, stamps, [None] * 199)).proceed()
    assert producer.flush(30) == 0
    written = [text and text.encode() for text in texts.to_pylist()]
    assert [row[1:3] for row in contents(mock_servers, topic)] == [(text, text) for text in written]


def test_a_text_of_the_function_is_written_as_utf8(
    mock_servers: str, new_topic: NewTopic, compiled: Any, source: str
) -> None:
    target = new_topic()

    def upper(batch: pa.RecordBatch) -> pa.RecordBatch:
        return batch.set_column(1, "value", pc.utf8_upper(batch.column("value").cast(pa.string())))

    copied(mock_servers, source, target, ColumnFetching(compiled.Reader()), upper)
    assert [row[2] for row in contents(mock_servers, target)] == [b"A", None, b"", "Ä".encode(), b"XYZ"]


def test_a_timestamp_that_librdkafka_would_write_as_now_is_refused_though_the_others_are_packed(
    mock_servers: str, new_topic: NewTopic, compiled: Any, source: str
) -> None:
    def at_0(batch: pa.RecordBatch) -> pa.RecordBatch:
        return batch.set_column(2, "timestamp", pa.array([0] * batch.num_rows, pa.int64()))

    with pytest.raises(RecordsRefused) as refused:
        copied(mock_servers, source, new_topic(), ColumnFetching(compiled.Reader()), at_0)
    assert len(refused.value.errors) == 5


OFFSETS, STAMPS = struct.pack("=3i", 0, 1, 2), struct.pack("=2q", 1, 2)
PLAIN = (2, 0, None, OFFSETS, b"ab")


@pytest.mark.parametrize(
    ("values", "stamps"),
    [
        ((2, 0, None, OFFSETS, b"a"), [1, 1]),
        ((2, 0, None, OFFSETS[:8], b"ab"), [1, 1]),
        ((2, 1, None, OFFSETS, b"ab"), [1, 1]),
        ((2, -1, None, OFFSETS, b"ab"), [1, 1]),
        ((2, 2**62, None, OFFSETS, b"ab"), [1, 1]),
        ((-1, 0, None, OFFSETS, b"ab"), [1, 1]),
        ((2, 0, b"", OFFSETS, b"ab"), [1, 1]),
        ((2, 0, None, None, b"ab"), [1, 1]),
        ((2, 0, None, struct.pack("=3i", 0, 2, 1), b"ab"), [1, 1]),
        ((2, 0, None, struct.pack("=3i", -1, 1, 2), b"ab"), [1, 1]),
        ((2, 0, None), [1, 1]),
        (PLAIN, [1]),
        (PLAIN, (2, 0, None, None, STAMPS[:8])),
        (PLAIN, (2, 1, None, None, STAMPS)),
        (PLAIN, (2, 0, b"\xff", None, STAMPS)),
        (PLAIN, (1, 0, None, None, STAMPS)),
    ],
)
def test_buffers_that_do_not_fit_are_refused(compiled: Any, values: tuple[Any, ...], stamps: Any) -> None:
    with pytest.raises(ValueError, match="must"):
        compiled.Writer(1).write("topic", values, [None, None], stamps, None, None, 0)


def test_what_is_no_buffer_is_refused(compiled: Any) -> None:
    with pytest.raises(TypeError):
        compiled.Writer(1).write("topic", (2, 0, None, [0, 1, 2], b"ab"), [None, None], [1, 1], None, None, 0)


def test_buffers_that_fit_are_taken(compiled: Any) -> None:
    assert compiled.Writer(1).write("topic", PLAIN, PLAIN, (2, 0, None, None, STAMPS), None, None, 0) == 0
