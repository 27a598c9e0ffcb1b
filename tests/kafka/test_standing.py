"""Whether the positions of a checkpoint can still be read from, and how far behind they are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from twopc.kafka.positions import PartitionPosition
from twopc.kafka.standing import Standing, Verdict, ask_standings, standings, unreadable
from twopc.kafka.wire import EARLIEST, TopicInfo
from twopc.protocol.ids import Position, TopicPartition
from twopc.testing.broker import Broker
from twopc.testing.topics import create_topic, delete_topic, produce

IN = TopicPartition("in", 0)


class Cluster:
    """One topic with one partition, from offset 10 to offset 50."""

    def topics(self, names: Sequence[str]) -> dict[str, TopicInfo]:
        return {name: TopicInfo("id", 1) for name in names if name == "in"}

    def offsets(self, at: Mapping[TopicPartition, int]) -> dict[TopicPartition, Position]:
        return {partition: Position(10 if when == EARLIEST else 50) for partition, when in at.items()}


def standing(position: int, partition: TopicPartition = IN, topic_id: str = "id") -> Standing:
    (found,) = standings(Cluster(), [PartitionPosition(partition, topic_id, Position(position))])
    return found


def test_a_position_between_the_first_record_and_the_end_can_be_read_from() -> None:
    assert standing(20) == Standing(IN, Verdict.READABLE, Position(10), Position(50), 30)
    assert (standing(10).verdict, standing(50).verdict) == (Verdict.READABLE, Verdict.READABLE)
    assert standing(50).behind == 0


def test_records_that_retention_has_deleted_are_missed() -> None:
    assert (standing(9).verdict, standing(9).behind) == (Verdict.DELETED, 41)


def test_a_position_beyond_the_end_is_said_so() -> None:
    assert (standing(51).verdict, standing(51).behind) == (Verdict.BEYOND, None)


def test_a_position_in_a_topic_that_was_recreated_or_is_gone_means_nothing() -> None:
    assert standing(20, topic_id="another").verdict is Verdict.RECREATED
    assert standing(20, TopicPartition("in", 1)).verdict is Verdict.GONE
    assert standing(20, TopicPartition("other", 0)).verdict is Verdict.GONE


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
    create_topic(broker.bootstrap_servers, "standing", 1)
    try:
        produce(broker.bootstrap_servers, "standing", [b"a", b"b", b"c"])
        held = PartitionPosition(TopicPartition("standing", 0), "another-id", Position(1))
        (found,) = ask_standings(broker.bootstrap_servers, {}, [held])
        assert (found.verdict, found.first, found.end) == (Verdict.RECREATED, 0, 3)
    finally:
        delete_topic(broker.bootstrap_servers, "standing")
