"""Spark's own streaming queries, exactly once.

`kafka_sink` is for `writeStream.foreachBatch`; `register` makes the format `twopc-kafka` known to a session, and `lag`
tells how far a query that reads by it is behind.
"""

from twopc.spark.streaming.data_source import register
from twopc.spark.streaming.sink import kafka_sink
from twopc.spark.streaming.source_lag import lag

__all__ = ["kafka_sink", "lag", "register"]
