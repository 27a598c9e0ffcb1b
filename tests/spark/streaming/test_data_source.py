"""The format `twopc-kafka`: its name and columns, and what is refused by name."""

from __future__ import annotations

import pytest
from pyspark.sql.types import StructType

from twopc.errors import ConfigurationError
from twopc.spark.streaming.data_source import KafkaDataSource

NOTHING = StructType()


def test_the_format_has_its_name() -> None:
    assert KafkaDataSource.name() == "twopc-kafka"


def test_what_is_no_stream_is_refused_with_what_to_do() -> None:
    source = KafkaDataSource({})
    with pytest.raises(ConfigurationError, match=r"read.format\('twopc-kafka'\) is not possible: .*availableNow=True"):
        source.reader(NOTHING)
    with pytest.raises(ConfigurationError, match=r"write.format\('twopc-kafka'\) is not possible: .* writeStream"):
        source.writer(NOTHING, overwrite=False)
