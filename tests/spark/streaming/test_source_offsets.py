"""What Spark stores of how far a query has read."""

from __future__ import annotations

import json

import pytest

from twopc.errors import ConfigurationError
from twopc.kafka.positions.partition_position import PartitionPosition
from twopc.kafka.topic_partition import Position, TopicPartition
from twopc.spark.streaming.source_offsets import SourceOffsets


def at(topic: str, partition: int, position: int) -> PartitionPosition:
    return PartitionPosition(TopicPartition(topic, partition), f"id-of-{topic}", Position(position))


OFFSETS = SourceOffsets.of([at("b", 10, 3), at("a", 0, 1), at("b", 2, 7)])
STORED = {
    "version": 1,
    "topics": {
        "a": {"id": "id-of-a", "offsets": {"0": 1}},
        "b": {"id": "id-of-b", "offsets": {"2": 7, "10": 3}},
    },
}


def test_offsets_are_stored_by_topic_and_partition() -> None:
    assert OFFSETS.to_json() == STORED


def test_equal_offsets_are_the_same_text() -> None:
    other = SourceOffsets.of(reversed(OFFSETS.positions))
    assert json.dumps(other.to_json()) == json.dumps(OFFSETS.to_json())


def test_stored_offsets_are_read_back() -> None:
    assert SourceOffsets.from_json(json.loads(json.dumps(STORED))) == OFFSETS


def test_a_query_that_has_read_nothing_names_no_topic() -> None:
    assert SourceOffsets().to_json() == {"version": 1, "topics": {}}
    assert SourceOffsets.from_json({"version": 1, "topics": {}}) == SourceOffsets()


@pytest.mark.parametrize(
    "stored",
    [
        {"orders": {"0": 12}},
        {"version": 2, "topics": {}},
        {"version": 1, "topics": {"a": {"0": 1}}},
        {},
        {"version": 1},
    ],
)
def test_offsets_of_another_source_are_refused_with_what_they_say(stored: dict[str, object]) -> None:
    with pytest.raises(ConfigurationError, match="a new checkpointLocation, and say where to go on") as caught:
        SourceOffsets.from_json(stored)
    assert json.dumps(stored) in str(caught.value)
