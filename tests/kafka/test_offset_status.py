"""Whether the positions of a checkpoint can still be read from, and how far behind they are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from twopc.kafka.clients.control_client import EARLIEST, TopicInfo
from twopc.kafka.positions.offset_status import (
    OffsetStatus,
    Readability,
    fetch_offset_statuses,
    offset_statuses,
    unreadable,
)
from twopc.kafka.positions.partition_position import LastRead, PartitionPosition
from twopc.kafka.topic_partition import Position, TopicPartition
from twopc.testing.broker import Broker
from twopc.testing.topics import create_topic, delete_topic, produce

IN = TopicPartition("in", 0)


class Cluster:
    """One topic with one partition, from offset 10 to offset 50."""

    def topics(self, names: Sequence[str]) -> dict[str, TopicInfo]:
        return {name: TopicInfo("id", 1) for name in names if name == "in"}

    def offsets(self, at: Mapping[TopicPartition, int]) -> dict[TopicPartition, Position]:
        return {partition: Position(10 if when == EARLIEST else 50) for partition, when in at.items()}

    def epoch_ends(self, epochs: Mapping[TopicPartition, int]) -> dict[TopicPartition, Position | None]:
        """Return that epoch 5 ends at offset 30."""
        return dict.fromkeys(epochs, Position(30))


def status(position: int, partition: TopicPartition = IN, topic_id: str = "id") -> OffsetStatus:
    (found,) = offset_statuses(Cluster(), [PartitionPosition(partition, topic_id, Position(position))])
    return found


def test_a_position_between_the_first_record_and_the_end_can_be_read_from() -> None:
    assert status(20) == OffsetStatus(IN, Readability.READABLE, Position(10), Position(50), 30)
    assert (status(10).readability, status(50).readability) == (Readability.READABLE, Readability.READABLE)
    assert status(50).behind == 0


def test_records_that_retention_has_deleted_are_missed() -> None:
    assert (status(9).readability, status(9).behind) == (Readability.DELETED, 41)


def test_a_position_beyond_the_end_is_said_so() -> None:
    assert (status(51).readability, status(51).behind) == (Readability.BEYOND, None)


def test_a_position_behind_what_the_brokers_have_lost_is_said_so() -> None:
    held = PartitionPosition(IN, "id", Position(31), read=LastRead(5, Position(31)))
    (found,) = offset_statuses(Cluster(), [held])
    assert (found.readability, found.behind) == (Readability.CUT, None)


def test_a_position_in_a_topic_that_was_recreated_or_is_gone_means_nothing() -> None:
    assert status(20, topic_id="another").readability is Readability.RECREATED
    assert status(20, TopicPartition("in", 1)).readability is Readability.GONE
    assert status(20, TopicPartition("other", 0)).readability is Readability.GONE


def test_what_cant_be_read_any_more_is_told_in_words() -> None:
    held = [PartitionPosition(IN, "id", Position(at)) for at in (9, 10, 51)]
    recreated = PartitionPosition(IN, "another", Position(10))
    told = unreadable(Cluster(), [*held, recreated])
    assert told == {
        held[0].to_split_position(): "in[0] from offset 9 on (deleted by retention: the first record is at 10 now)",
        held[2].to_split_position(): "in[0] from offset 51 on (beyond the end: it ends at 50 now)",
        recreated.to_split_position(): "in[0] from offset 10 on (topic was recreated)",
    }


@pytest.mark.broker
def test_a_broker_is_asked(broker: Broker) -> None:
    create_topic(broker.bootstrap_servers, "status", 1)
    try:
        produce(broker.bootstrap_servers, "status", [b"a", b"b", b"c"])
        held = PartitionPosition(TopicPartition("status", 0), "another-id", Position(1))
        (found,) = fetch_offset_statuses(broker.bootstrap_servers, {}, [held])
        assert (found.readability, found.first, found.end) == (Readability.RECREATED, 0, 3)
    finally:
        delete_topic(broker.bootstrap_servers, "status")
