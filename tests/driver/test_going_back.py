"""What a person is told who restores another checkpoint than the latest."""

from __future__ import annotations

import logging
from dataclasses import replace

import pytest

from tests.driver.test_losses import metadata
from twopc.driver.going_back import consequence, consequence_of_copy
from twopc.logs import NEVER_HIDDEN, configure_logging
from twopc.protocol.facts import CheckpointMetadata, PartitionPosition
from twopc.protocol.ids import Position, TopicPartition
from twopc.source import Split


def with_second_partition(found: CheckpointMetadata, position: int) -> CheckpointMetadata:
    [snapshot] = found.snapshots
    more = PartitionPosition(TopicPartition("in", 1), "id", Position(position))
    return replace(found, snapshots=(replace(snapshot, positions=(*snapshot.positions, more)),))


def begun(*starts: int, topic_id: str = "id") -> list[Split]:
    return [Split(TopicPartition("in", number), topic_id, Position(start), None) for number, start in enumerate(starts)]


def test_the_latest_has_no_consequence() -> None:
    assert consequence(metadata(7), metadata(7), begun(70)) is None
    assert consequence(None, None, begun(0)) is None


def test_a_healed_latest_has_no_consequence_where_it_is_read_again() -> None:
    assert consequence(metadata(7), metadata(7), begun(50)) is None


def test_an_older_one_names_the_offsets_whose_output_comes_twice() -> None:
    said = consequence(with_second_partition(metadata(7), 9), with_second_partition(metadata(5), 9), begun(50, 9))
    assert said is not None
    assert "checkpoint 5 is restored, as asked, while checkpoint 7 is the latest" in said
    assert said.endswith("twice: in[0] offsets 50 to 69")


def test_a_partition_that_the_older_one_does_not_know_is_named_from_where_it_is_read() -> None:
    said = consequence(with_second_partition(metadata(7), 9), metadata(5), begun(50, 3))
    assert said is not None
    assert said.endswith("in[0] offsets 50 to 69, in[1] offsets 3 to 8")


def test_starting_afresh_names_everything_that_is_read_again() -> None:
    said = consequence(metadata(7), None, begun(0))
    assert said is not None
    assert said.startswith("nothing is restored, as asked")
    assert said.endswith("in[0] offsets 0 to 69")


def test_starting_afresh_where_the_group_stands_has_no_consequence() -> None:
    assert consequence(metadata(7), None, begun(70)) is None


def test_starting_after_what_was_read_has_no_consequence() -> None:
    assert consequence(metadata(7), None, begun(90)) is None


def test_a_topic_that_was_created_again_is_not_read_again() -> None:
    assert consequence(metadata(7), None, begun(0, topic_id="another")) is None


def test_a_partition_that_is_not_read_any_more_is_not_read_again() -> None:
    assert consequence(metadata(7), metadata(5), []) is None


def test_of_many_partitions_ten_are_named() -> None:
    positions = tuple(PartitionPosition(TopicPartition("in", each), "id", Position(9)) for each in range(1_000))
    [snapshot] = metadata(7).snapshots
    latest = replace(metadata(7), snapshots=(replace(snapshot, positions=positions),))
    said = consequence(latest, None, begun(*[0] * 1_000))
    assert said is not None
    assert said.endswith("in[9] offsets 0 to 8 and 990 more")


def test_a_copy_names_the_input_whose_output_may_come_twice() -> None:
    said = consequence_of_copy(with_second_partition(metadata(7), 9))
    assert said.endswith("twice: in[0] from offset 70, in[1] from offset 9")


def test_what_readers_will_see_twice_is_said_whatever_the_level(capsys: pytest.CaptureFixture[str]) -> None:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    try:
        configure_logging("error", "text")
        logging.getLogger(NEVER_HIDDEN).warning("twice")
        logging.getLogger("twopc.other").warning("hidden")
    finally:
        root.handlers[:] = handlers
        root.setLevel(level)
    said = capsys.readouterr().err
    assert "twice" in said
    assert "hidden" not in said
