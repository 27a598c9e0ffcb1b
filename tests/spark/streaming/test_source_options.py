"""The options of the source `twopc-kafka`, and what is said of those that can't be meant."""

from __future__ import annotations

import pytest

from tests.spark.streaming.source_cluster import SERVERS, options
from twopc.errors import ConfigurationError
from twopc.kafka.input.startup_modes import StartingOffsets
from twopc.spark.streaming.source_options import SourceOptions


def test_case_does_not_count_in_names_of_options() -> None:
    made = SourceOptions.of({"KAFKA.bootstrap.SERVERS": "h:1", "SUBSCRIBE": "a, b", "maxoffsetspertrigger": "5"})
    assert (made.servers, made.topics, made.most) == ("h:1", ("a", "b"), 5)


def test_properties_of_the_client_have_a_prefix() -> None:
    made = options(**{"kafka.security.protocol": "SASL_SSL", "kafka.sasl.mechanism": "PLAIN"})
    assert made.properties == {"security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN"}


def test_no_secret_stands_in_the_text_of_the_options() -> None:
    assert "geheim" not in repr(options(**{"kafka.sasl.password": "geheim"}))


@pytest.mark.parametrize(
    ("said", "start"),
    [
        ({}, StartingOffsets.earliest()),
        ({"startingOffsets": "Latest"}, StartingOffsets.latest()),
        ({"startingTimestamp": "1234"}, StartingOffsets.timestamp(1234)),
        ({"startingOffsets": '{"orders": {"1": 7}}'}, StartingOffsets.specific({("orders", 1): 7})),
    ],
)
def test_where_a_query_begins_is_said_as_to_spark(said: dict[str, str], start: object) -> None:
    assert options(**said).start == start


def test_topics_are_named_or_match_a_pattern() -> None:
    made = options(subscribePattern="o.*", excludePattern="old.*,other")
    assert made.pattern is not None
    assert made.pattern.among(["orders", "old-1", "other", "x"]) == ("orders",)


@pytest.mark.parametrize(
    ("said", "refusal"),
    [
        ({"subscribe": ""}, "needs topics or a pattern"),
        ({"subscribe": "a", "subscribePattern": "b"}, "not both"),
        ({"failOnDataLoss": "false"}, "no option 'failondataloss': a loss always ends the query here; .*acceptLoss"),
        ({"assign": "{}"}, "no option 'assign': say subscribe"),
        ({"path": "orders"}, "load.. and start.. take no path"),
        ({"maxOffsets": "5"}, "no option 'maxoffsets': it knows subscribe, .*maxOffsetsPerTrigger.*kafka.\\*"),
        ({"maxOffsetsPerTrigger": "0"}, "maxOffsetsPerTrigger is a number of offsets, 1 or more, not '0'"),
        ({"minOffsetsPerTrigger": "many"}, "minOffsetsPerTrigger is a number"),
        ({"maxTriggerDelay": "15"}, "maxTriggerDelay: '15' is not a duration"),
        ({"includeHeaders": "yes"}, "includeHeaders is true or false"),
        ({"startingOffsets": "newest"}, "earliest, latest, or offsets as JSON.*not 'newest'"),
        ({"startingOffsets": '{"orders": 3}'}, "earliest, latest, or offsets as JSON"),
        ({"startingOffsets": '{"orders": {"0": -2}}'}, "offsets of 0 or more"),
        ({"startingTimestamp": "today"}, "startingTimestamp is Unix milliseconds, not 'today'"),
        ({"startingTimestamp": "1", "startingOffsets": "latest"}, "leave one of them out"),
        ({"subscribePattern": "("}, "can't take '\\(' for a pattern"),
        ({"kafka.group.id": "mine"}, "can't take the property 'group.id': a query of Spark's has no consumer group"),
        ({"kafka.isolation.level": "read_uncommitted"}, "exactly-once depends on it"),
        ({"kafka.sasl.jaas.config": "x"}, "'sasl.jaas.config' can't be used"),
    ],
)
def test_what_cannot_be_meant_is_refused_by_name(said: dict[str, str], refusal: str) -> None:
    with pytest.raises(ConfigurationError, match=refusal):
        SourceOptions.of(SERVERS | ({} if "subscribePattern" in said else {"subscribe": "orders"}) | said)


def test_brokers_must_be_named() -> None:
    with pytest.raises(ConfigurationError, match=r"say option\('kafka.bootstrap.servers', 'HOST:PORT'\)"):
        SourceOptions.of({"subscribe": "orders"})
