"""The source `twopc-kafka` in a query of Spark's: what Spark tells of it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from twopc.spark.streaming import lag, register
from twopc.testing.broker import Broker
from twopc.testing.topics import Write, create_topic, produce

pytestmark = pytest.mark.spark

SECRET = "not-to-be-shown"


def source(session: SparkSession, broker: Broker, **said: str) -> DataFrame:
    register(session)
    options = {"kafka.bootstrap.servers": broker.bootstrap_servers, "kafka.sasl.password": SECRET} | said
    return session.readStream.format("twopc-kafka").options(**options).load()


def test_a_query_reads_what_is_there_in_batches_and_tells_where_it_stands_and_no_secret(
    session: SparkSession,
    broker: Broker,
    topic: Callable[[], str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    orders = topic()
    create_topic(broker.bootstrap_servers, orders, 2)
    produce(broker.bootstrap_servers, orders, [Write(b"%d" % number, partition=number % 2) for number in range(30)])
    frame = source(session, broker, subscribe=orders, maxOffsetsPerTrigger="20", includeHeaders="true")
    batches: list[list[int]] = []
    writing = frame.writeStream.foreachBatch(
        lambda rows, _: batches.append(sorted(int(row["value"]) for row in rows.collect()))
    )
    query = writing.trigger(availableNow=True).option("checkpointLocation", str(tmp_path)).start()
    query.awaitTermination()
    assert batches == [[], list(range(20)), list(range(20, 30))]

    assert lag(query.recentProgress[1]) == {f"{orders}[0]": 5, f"{orders}[1]": 5}

    query.explain(extended=True)
    frame.explain(extended=True)
    logs = "".join(file.read_text() for file in tmp_path.glob("*/*") if file.suffix != ".crc")
    shown = capsys.readouterr().out + "".join(each.json for each in query.recentProgress) + logs
    assert "twopc-kafka" in shown
    assert SECRET not in shown


def test_options_that_cannot_be_meant_are_refused_before_the_query_starts(
    session: SparkSession, broker: Broker
) -> None:
    with pytest.raises(PySparkException, match="has no option 'failondataloss'") as caught:
        source(session, broker, subscribe="orders", failOnDataLoss="false")
    assert "acceptLoss" in str(caught.value)
    assert SECRET not in str(caught.value)
