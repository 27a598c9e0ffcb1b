"""Upper on Spark Structured Streaming. Arguments: job, servers, source, target, folder, width, trigger ms, jars."""

from __future__ import annotations

import sys

from pyspark.sql import SparkSession
from pyspark.sql.functions import col, upper


def main() -> None:
    """Run until killed."""
    _, servers, source, target, folder, width, interval_ms, jars = sys.argv[1:]
    spark = (
        SparkSession.builder.master(f"local[{width}]")
        .config("spark.jars", jars)
        .config("spark.driver.memory", "2g")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", width)
        .config("spark.log.level", "ERROR")
        .getOrCreate()
    )
    kafka = {"kafka.bootstrap.servers": servers}
    read = {"subscribe": source, "startingOffsets": "earliest", "kafka.isolation.level": "read_committed"}
    tuned = {"kafka.max.poll.records": "10000", "kafka.fetch.min.bytes": "100000"}
    tuned |= {"kafka.max.partition.fetch.bytes": "10000000"}
    frame = spark.readStream.format("kafka").options(**kafka, **read, **tuned).load()
    written = {"topic": target, "kafka.linger.ms": "20", "kafka.batch.size": "1000000"}
    written |= {"kafka.buffer.memory": "134217728", "checkpointLocation": f"{folder}/checkpoints"}
    query = (
        frame.select("key", upper(col("value").cast("string")).cast("binary").alias("value"))
        .writeStream.format("kafka")
        .options(**kafka, **written)
        .trigger(processingTime=f"{interval_ms} milliseconds")
        .start()
    )
    query.awaitTermination()


if __name__ == "__main__":
    main()
