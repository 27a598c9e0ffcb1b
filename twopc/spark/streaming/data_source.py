"""`twopc-kafka` as a format of Spark's: what `readStream` and `writeStream` ask for by that name.

Spark pickles the class by its name, so every Python that runs a part of a query has this package.
"""

from __future__ import annotations

from typing import NoReturn

from pyspark.sql import SparkSession
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
)
from pyspark.sql.types import StructType

from twopc.errors import ConfigurationError
from twopc.spark.streaming.format_options import sink_options
from twopc.spark.streaming.source_options import SourceOptions
from twopc.spark.streaming.source_reader import KafkaStreamReader
from twopc.spark.streaming.source_task import schema_of
from twopc.spark.streaming.stream_writer import KafkaStreamWriter

FORMAT = "twopc-kafka"

COLUMNS = "key binary, value binary, topic string, partition int, offset bigint, timestamp timestamp, timestampType int"
"""The columns of Spark's own Kafka source."""

COLUMNS_AND_HEADERS = f"{COLUMNS}, headers array<struct<key: string, value: binary>>"


class KafkaDataSource(DataSource):
    """Opens nothing: each instance is made for one question of Spark's, in whatever process that has it answered."""

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def schema(self) -> str:
        return COLUMNS_AND_HEADERS if SourceOptions.of(self.options).headers else COLUMNS

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802  Spark's name
        options = SourceOptions.of(self.options)
        if schema.names != schema_of(options).names:
            raise ConfigurationError(
                f"the source {FORMAT} has the columns {', '.join(schema_of(options).names)}: leave out schema(), and "
                "select what you need of them"
            )
        return KafkaStreamReader(options)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:  # noqa: N802  Spark's name
        return KafkaStreamWriter(sink_options(self.options), schema)

    def reader(self, schema: StructType) -> DataSourceReader:
        _refuse("read", "a query that ends is readStream with trigger(availableNow=True)")

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        _refuse("write", "what is exactly once are the batches of a query, by writeStream")


def register(session: SparkSession) -> None:
    """Make the format known to a session: `readStream.format("twopc-kafka")`."""
    session.dataSource.register(KafkaDataSource)


def _refuse(what: str, instead: str) -> NoReturn:
    raise ConfigurationError(f"{what}.format({FORMAT!r}) is not possible: {instead}")
