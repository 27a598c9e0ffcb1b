"""The queries of `streaming_sinks.py`, one after the other in one Spark; says of each how long its batches took."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import col, upper
from pyspark.sql.streaming.readwriter import DataStreamWriter

from twopc.spark.streaming import kafka_sink, register

PRODUCER = {"linger.ms": "20", "batch.size": "1000000"}


def session(settings: dict[str, Any]) -> SparkSession:
    """Return a session that has Spark's connector and our format."""
    made: SparkSession = (
        SparkSession.builder.master(f"local[{settings['width']}]")
        .config("spark.jars", settings["jars"])
        .config("spark.driver.memory", "2g")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.log.level", "ERROR")
        .config("spark.sql.streaming.numRecentProgressUpdates", "10000")
        .getOrCreate()
    )
    register(made)
    return made


def rows(spark: SparkSession, settings: dict[str, Any]) -> DataFrame:
    """Return the input, so many rows a batch, as it is to be written."""
    read = {"subscribe": settings["source"], "startingOffsets": "earliest", "kafka.isolation.level": "read_committed"}
    read |= {"kafka.max.poll.records": "10000", "kafka.fetch.min.bytes": "100000"}
    read |= {"kafka.max.partition.fetch.bytes": "10000000", "maxOffsetsPerTrigger": str(settings["rows"])}
    frame = (
        spark.readStream.format("kafka").option("kafka.bootstrap.servers", settings["servers"]).options(**read).load()
    )
    return frame.select("key", upper(col("value").cast("string")).cast("binary").alias("value"))


def writing(frame: DataFrame, sink: str, topic: str, settings: dict[str, Any]) -> DataStreamWriter:
    """Return what writes the rows by this sink."""
    decisions = str(Path(settings["folder"]) / "decisions")
    servers = settings["servers"]
    if sink == "foreachBatch":
        ours = kafka_sink(topic, name=topic, decisions=decisions, bootstrap_servers=servers, properties=PRODUCER)
        return frame.writeStream.foreachBatch(ours)
    named = frame.writeStream.format(sink).option("kafka.bootstrap.servers", servers).option("topic", topic)
    named = named.options(**{f"kafka.{name}": value for name, value in PRODUCER.items()})
    if sink == "kafka":
        return named.option("kafka.buffer.memory", "134217728")
    return named.option("name", topic).option("decisions", decisions)


def main() -> None:
    """Run them all to their end."""
    settings = json.loads(sys.argv[1])
    spark = session(settings)
    for number, sink in settings["queries"]:
        topic = f"{sink}-{number}"
        made = writing(rows(spark, settings), sink, topic, settings).trigger(availableNow=True)
        query = made.option("checkpointLocation", f"{settings['folder']}/checkpoints/{topic}").start()
        query.awaitTermination()
        batches = [
            {"rows": each["numInputRows"], "seconds": each["durationMs"]["triggerExecution"] / 1000}
            for each in query.recentProgress
            if each["numInputRows"]
        ]
        print(json.dumps({"sink": sink, "batches": batches}), flush=True)
    spark.stop()


if __name__ == "__main__":
    main()
