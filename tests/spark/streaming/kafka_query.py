"""A streaming query from Kafka to Kafka as a process of its own, to be killed: every record as it is."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import assert_never

from pyspark.sql import DataFrame
from pyspark.sql.streaming.readwriter import DataStreamWriter

from tests.spark.jvms import local_session
from tests.spark.streaming.way import Way
from twopc.spark.streaming import kafka_sink, register


def writing(frame: DataFrame, way: Way, servers: str, topic: str, decisions: str) -> DataStreamWriter:
    match way:
        case Way.FUNCTION:
            sink = kafka_sink(topic, name=topic, decisions=decisions, bootstrap_servers=servers)
            return frame.writeStream.foreachBatch(sink)
        case Way.FORMAT:
            made = frame.writeStream.format("twopc-kafka").option("kafka.bootstrap.servers", servers)
            return made.option("topic", topic).option("name", topic).option("decisions", decisions)
        case _:
            assert_never(way)


def main() -> None:
    servers, source, topic, work, begins, offsets_a_batch, way = sys.argv[1:]
    os.environ["PYSPARK_PYTHON"] = sys.executable
    session = local_session("kafka-query", "local[2,4]")
    register(session)
    read = session.readStream.format("twopc-kafka").option("kafka.bootstrap.servers", servers)
    limited = read.option("subscribe", source).option("maxOffsetsPerTrigger", offsets_a_batch)
    made = limited.option("startingOffsets", begins).load()
    query = writing(made.select("key", "value"), Way(way), servers, topic, str(Path(work) / "decisions"))
    query = query.trigger(availableNow=True).option("checkpointLocation", str(Path(work) / "checkpoint"))
    query.start().awaitTermination()
    session.stop()


if __name__ == "__main__":
    main()
