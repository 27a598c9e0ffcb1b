"""A streaming query as a process of its own, to be killed: files of numbers, one batch after the other, into Kafka."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  everybody's name for it

from tests.spark.jvms import local_session
from twopc.spark.streaming import kafka_sink

KEYS = 10


def rows(frame: DataFrame) -> DataFrame:
    """Every number as it is."""
    return frame.select(F.col("value").alias("key"), F.col("value"))


def counts(frame: DataFrame) -> DataFrame:
    """How often each last digit was seen, whenever that changes."""
    digits = frame.groupBy((F.col("value").cast("int") % KEYS).cast("string").alias("key")).count()
    return digits.select("key", F.col("count").cast("string").alias("value"))


def main() -> None:
    servers, topic, work, files_a_batch, kind = sys.argv[1:]
    os.environ["PYSPARK_PYTHON"] = sys.executable
    session = local_session("query", "local[2,4]", **{"spark.sql.shuffle.partitions": "2"})
    made = session.readStream.option("maxFilesPerTrigger", files_a_batch).text(str(Path(work) / "in"))
    sink = kafka_sink(topic, name=topic, decisions=str(Path(work) / "decisions"), bootstrap_servers=servers)
    frame, mode = (counts(made), "update") if kind == "counts" else (rows(made), "append")
    writing = frame.writeStream.foreachBatch(sink).outputMode(mode).trigger(availableNow=True)
    query = writing.option("checkpointLocation", str(Path(work) / "checkpoint")).start()
    query.awaitTermination()
    session.stop()


if __name__ == "__main__":
    main()
