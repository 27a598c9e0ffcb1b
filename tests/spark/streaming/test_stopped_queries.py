"""A query that writes its whole table with each batch is stopped, again and again, while a batch is under way."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

from tests.spark.streaming.numbers import counts_after_each_batch, write_files, written
from tests.spark.streaming.query import counts
from twopc.faults.points import CrashPoint
from twopc.kafka.clients.control_client import ControlClient
from twopc.kafka.transactions.lingering_transactions import ongoing_ids
from twopc.spark.streaming import kafka_sink, query_run
from twopc.testing.broker import Broker
from twopc.testing.topics import create_topic

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]

FILES, FILES_A_BATCH = 4, 1
STOP_SECONDS = 2.0
"""So long a batch waits for the query to be stopped; Spark may in turn wait for the batch."""


BEGUN = "begun"
PLACES = [(BEGUN, 0), (CrashPoint.COORDINATOR_AFTER_ACKS, 1), (CrashPoint.AFTER_END_TXN, 2)]


class Stops:
    """Stops a query, once at each place of a batch, beside the thread that is there."""

    def __init__(self, session: SparkSession, name: str) -> None:
        self._session = session
        self._name = name
        self._left = list(PLACES)
        self.happened: list[object] = []

    def at(self, place: tuple[object, int]) -> None:
        if place not in self._left:
            return
        self._left.remove(place)
        query = next(each for each in self._session.streams.active if each.name == self._name)
        stopping = threading.Thread(target=query.stop)
        stopping.start()
        stopping.join(STOP_SECONDS)
        self.happened.append(place)


@pytest.fixture
def two_reducers(session: SparkSession) -> Iterator[None]:
    before = session.conf.get("spark.sql.shuffle.partitions")
    session.conf.set("spark.sql.shuffle.partitions", "2")
    yield
    session.conf.set("spark.sql.shuffle.partitions", str(before))


@pytest.mark.usefixtures("two_reducers")
def test_a_query_that_is_stopped_in_its_batches_writes_every_row_once(
    session: SparkSession,
    broker: Broker,
    tmp_path: Path,
    topic: Callable[[], str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    name = topic()
    stops = Stops(session, name)
    create_topic(broker.bootstrap_servers, name, 2)
    write_files(tmp_path / "in", FILES)
    decisions = str(tmp_path / "decisions")
    sink = kafka_sink(name, name=name, decisions=decisions, bootstrap_servers=broker.bootstrap_servers)

    def reached(point: CrashPoint, *, checkpoint: int = 0, **_: Any) -> None:
        stops.at((point, checkpoint))

    def write(frame: DataFrame, batch: int) -> None:
        stops.at((BEGUN, batch))
        sink(frame, batch)

    monkeypatch.setattr(query_run, "reached", reached)
    made = counts(session.readStream.option("maxFilesPerTrigger", FILES_A_BATCH).text(str(tmp_path / "in")))
    writing = made.writeStream.foreachBatch(write).outputMode("complete").trigger(availableNow=True).queryName(name)
    writing = writing.option("checkpointLocation", str(tmp_path / "checkpoint"))
    for _ in range(len(PLACES) + 1):
        # The batch may end as one that was interrupted; what is begun next is another run.
        with suppress(StreamingQueryException):
            writing.start().awaitTermination()
    sink.close()
    assert stops.happened == PLACES
    assert written(broker.bootstrap_servers, name) == counts_after_each_batch(FILES, FILES_A_BATCH)
    with ControlClient(broker.bootstrap_servers, {}) as client:
        assert ongoing_ids(client, name) == {}
