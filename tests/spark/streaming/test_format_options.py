"""What a query may say of its output by options, and what is refused by name; no JVM, no broker."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql.types import IntegerType, StringType, StructType

from twopc.errors import ConfigurationError
from twopc.spark.streaming.data_source import KafkaDataSource
from twopc.spark.streaming.format_options import sink_options

NEEDED = {"kafka.bootstrap.servers": "127.0.0.1:1", "name": "out", "decisions": "/decisions"}


def test_options_say_what_the_function_for_batches_is_given() -> None:
    said = {"topic": "t", "transactionTimeout": "15m", "firstBatch": "7", "acceptLoss": "a, b", "kafka.linger.ms": "1"}
    made = sink_options(NEEDED | said)
    assert (made.name, made.decisions, made.bootstrap_servers, made.topic) == ("out", "/decisions", "127.0.0.1:1", "t")
    assert (made.transaction_timeout_ms, made.first_batch, made.accept_loss) == (900_000, 7, frozenset("ab"))
    assert made.properties == {"linger.ms": "1"}


def test_case_does_not_count_in_the_name_of_an_option() -> None:
    assert sink_options({name.upper(): value for name, value in NEEDED.items()} | {"FIRSTBATCH": "2"}).first_batch == 2


def test_what_spark_itself_says_to_a_sink_is_no_option_of_ours() -> None:
    assert sink_options(NEEDED | {"checkpointLocation": "/checkpoints", "queryName": "q"}).name == "out"


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"path": "/out"}, "has no option 'path': it knows name, decisions, topic"),
        ({"name": ""}, r"needs option\('name', ...\): it stands in the query's transactional ids"),
        ({"decisions": ""}, r"needs option\('decisions', ...\): a folder, or a URL"),
        ({"kafka.bootstrap.servers": ""}, "no Kafka brokers are named"),
        ({"firstBatch": "-1"}, "option firstBatch is the number of a batch, not '-1'"),
        ({"transactionTimeout": "long"}, "transaction_timeout of the sink: 'long' is not a duration"),
        ({"topic": ""}, "needs the name of a topic"),
        ({"kafka.acks": "1"}, "can't take the property 'acks'"),
    ],
    ids=lambda each: next(iter(each)) if isinstance(each, dict) else "",
)
def test_a_wrong_option_is_refused_by_name(wrong: dict[str, str], said: str) -> None:
    with pytest.raises(ConfigurationError, match=said):
        sink_options(NEEDED | wrong)


def test_columns_that_no_record_has_are_refused_before_a_task_begins() -> None:
    source = KafkaDataSource(NEEDED | {"topic": "t"})
    with pytest.raises(ConfigurationError, match="can't write the column 'value' of int"):
        source.streamWriter(StructType().add("value", IntegerType()), overwrite=False)


def test_the_whole_table_may_be_written_with_each_batch(tmp_path: Path) -> None:
    source = KafkaDataSource(NEEDED | {"topic": "t", "decisions": str(tmp_path)})
    assert source.streamWriter(StructType().add("value", StringType()), overwrite=True) is not None
    assert list(tmp_path.iterdir()) == []
