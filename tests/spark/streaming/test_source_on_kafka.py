"""The source `twopc-kafka` at a real broker, in this process in place of Spark's: what its tasks hand to Spark."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from tests.kafka.kit import grow_topic
from tests.spark.streaming.source_cluster import by_partition
from twopc.errors import ConfigurationError
from twopc.kafka.clients.control_client import ControlClient
from twopc.kafka.input.marker_wait import await_markers
from twopc.spark.streaming import source_losses
from twopc.spark.streaming.source_options import SourceOptions
from twopc.spark.streaming.source_reader import KafkaStreamReader
from twopc.spark.streaming.source_task import schema_of
from twopc.testing.broker import Broker
from twopc.testing.topics import Write, create_topic, delete_topic, produce

pytestmark = pytest.mark.broker

HEADER = StructType([StructField("key", StringType()), StructField("value", BinaryType())])
SPARKS = StructType(
    [
        StructField("key", BinaryType()),
        StructField("value", BinaryType()),
        StructField("topic", StringType()),
        StructField("partition", IntegerType()),
        StructField("offset", LongType()),
        StructField("timestamp", TimestampType()),
        StructField("timestampType", IntegerType()),
        StructField("headers", ArrayType(HEADER)),
    ]
)


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source_losses, "GONE_SECONDS", 0.5)


class Query:
    """Asks as Spark does, one batch after the other."""

    def __init__(self, servers: str, topic: str, **said: str) -> None:
        options = {"kafka.bootstrap.servers": servers, "subscribe": topic} | said
        self.reader = KafkaStreamReader(SourceOptions.of(options))
        self.offsets = self.reader.initialOffset()
        self.batch()

    def planned(self) -> dict[str, Any]:
        return self.reader.latestOffset(self.offsets, self.reader.getDefaultReadLimit())

    def read(self, start: dict[str, Any], end: dict[str, Any]) -> list[dict[str, Any]]:
        parts = [list(self.reader.read(each)) for each in self.reader.partitions(start, end)]
        return [row for part in parts for batch in part for row in batch.to_pylist()]

    def batch(self) -> list[dict[str, Any]]:
        start, self.offsets = self.offsets, self.planned()
        return self.read(start, self.offsets)

    def values(self) -> list[bytes]:
        return [row["value"] for row in self.batch()]


@pytest.fixture
def orders(broker: Broker, topic: Callable[[], str]) -> str:
    name = topic()
    create_topic(broker.bootstrap_servers, name, 2)
    return name


@pytest.fixture
def query(broker: Broker, orders: str) -> Iterator[Query]:
    made = Query(broker.bootstrap_servers, orders, includeHeaders="true")
    yield made
    made.reader.stop()


@pytest.fixture
def transaction(broker: Broker, orders: str) -> Producer:
    """A producer whose first transaction has begun."""
    made = Producer({"bootstrap.servers": broker.bootstrap_servers, "transactional.id": orders})
    made.init_transactions(60)
    made.begin_transaction()
    return made


def ended(broker: Broker) -> None:
    with ControlClient(broker.bootstrap_servers, {}) as client:
        await_markers(client, 30)


def test_the_columns_are_those_that_spark_wants() -> None:
    options = {"kafka.bootstrap.servers": "h:1", "subscribe": "orders"}
    schema = to_arrow_schema(SPARKS, timezone="UTC")
    assert schema_of(SourceOptions.of(options | {"includeHeaders": "true"})).equals(schema)
    assert schema_of(SourceOptions.of(options)).equals(pa.schema(list(schema)[:-1]))


def test_a_record_is_a_row_with_all_that_it_has(broker: Broker, orders: str, query: Query) -> None:
    whole = Write(b"v", b"k", 1, 1_700_000_000_123, (("h", b"1"), ("n", None)))
    produce(broker.bootstrap_servers, orders, [whole, Write(None, b"gone", 1), Write(b"", None, 1)])
    first, second, third = query.batch()
    assert first == {
        "key": b"k",
        "value": b"v",
        "topic": orders,
        "partition": 1,
        "offset": 0,
        "timestamp": datetime(2023, 11, 14, 22, 13, 20, 123_000, tzinfo=UTC),
        "timestampType": 0,
        "headers": [{"key": "h", "value": b"1"}, {"key": "n", "value": None}],
    }
    assert (second["key"], second["value"], second["offset"], second["headers"]) == (b"gone", None, 1, None)
    assert (third["key"], third["value"]) == (None, b"")


def test_a_batch_ends_before_an_open_transaction_and_what_is_aborted_is_no_row(
    broker: Broker, orders: str, query: Query, transaction: Producer
) -> None:
    produce(broker.bootstrap_servers, orders, [Write(b"before", partition=0)])
    transaction.produce(orders, b"aborted", partition=0)
    transaction.flush(30)
    produce(broker.bootstrap_servers, orders, [Write(b"behind", partition=0)])
    assert query.values() == [b"before"]
    assert query.planned() == query.offsets
    transaction.abort_transaction(30)
    ended(broker)
    assert query.values() == [b"behind"]


def test_a_batch_of_nothing_but_what_was_aborted_has_no_rows(
    broker: Broker, orders: str, query: Query, transaction: Producer
) -> None:
    transaction.produce(orders, b"aborted", partition=0)
    transaction.flush(30)
    transaction.abort_transaction(30)
    ended(broker)
    start = query.offsets
    assert query.values() == []
    assert by_partition(query.offsets)[f"{orders}[0]"] > by_partition(start)[f"{orders}[0]"]


def test_a_batch_that_is_run_again_has_the_same_rows_though_more_has_come(
    broker: Broker, orders: str, query: Query
) -> None:
    produce(broker.bootstrap_servers, orders, [Write(b"%d" % number, partition=number % 2) for number in range(20)])
    start = query.offsets
    rows = query.batch()
    produce(broker.bootstrap_servers, orders, [Write(b"more", partition=0)])
    again = Query(broker.bootstrap_servers, orders, includeHeaders="true")
    assert again.read(start, query.offsets) == rows
    assert sorted(int(row["value"]) for row in rows) == list(range(20))


def test_a_partition_that_is_new_is_read_from_its_first_record(broker: Broker, orders: str) -> None:
    query = Query(broker.bootstrap_servers, orders, startingOffsets="latest")
    grow_topic(broker.bootstrap_servers, orders, 3)
    produce(broker.bootstrap_servers, orders, [Write(b"new", partition=2)])
    assert query.values() == []
    assert query.values() == [b"new"]


def test_records_that_retention_took_before_they_were_read_end_the_query(
    broker: Broker, orders: str, query: Query
) -> None:
    produce(broker.bootstrap_servers, orders, [Write(b"%d" % number, partition=0) for number in range(5)])
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    [deleted] = admin.delete_records([TopicPartition(orders, 0, 3)]).values()
    deleted.result(30)
    with pytest.raises(ConfigurationError, match=r"\[0\]@0 \(deleted by retention; 3 to 5 are there\).*acceptLoss"):
        query.planned()


def test_a_topic_that_was_deleted_and_created_again_ends_the_query(broker: Broker, orders: str, query: Query) -> None:
    produce(broker.bootstrap_servers, orders, [Write(b"old", partition=0)])
    start = query.offsets
    end = query.planned()
    [part] = query.reader.partitions(start, end)
    delete_topic(broker.bootstrap_servers, orders)
    create_topic(broker.bootstrap_servers, orders, 2)
    produce(broker.bootstrap_servers, orders, [Write(b"new", partition=0)])
    with pytest.raises(ConfigurationError, match=r"deleted while a batch of it was read.*nothing of that batch counts"):
        list(query.reader.read(part))
    with pytest.raises(ConfigurationError, match=r"\[0\]@0 \(topic was recreated; 0 to 1 are there\)"):
        query.planned()


def test_topics_are_found_by_a_pattern(broker: Broker, orders: str) -> None:
    create_topic(broker.bootstrap_servers, f"{orders}-more", 1)
    options = {"kafka.bootstrap.servers": broker.bootstrap_servers, "subscribePattern": f"{orders}.*"}
    reader = KafkaStreamReader(SourceOptions.of(options))
    begun = reader.latestOffset(reader.initialOffset(), reader.getDefaultReadLimit())
    assert by_partition(begun) == {f"{orders}[0]": 0, f"{orders}[1]": 0, f"{orders}-more[0]": 0}
    reader.stop()
