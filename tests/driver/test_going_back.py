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


def with_second_partition(found: CheckpointMetadata, position: int) -> CheckpointMetadata:
    [snapshot] = found.snapshots
    more = PartitionPosition(TopicPartition("in", 1), "id", Position(position))
    return replace(found, snapshots=(replace(snapshot, positions=(*snapshot.positions, more)),))


def test_the_latest_has_no_consequence() -> None:
    assert consequence(metadata(7), metadata(7)) is None
    assert consequence(None, None) is None


def test_an_older_one_names_the_offsets_whose_output_comes_twice() -> None:
    said = consequence(with_second_partition(metadata(7), 9), with_second_partition(metadata(5), 9))
    assert said is not None
    assert "checkpoint 5 is restored, as asked, while checkpoint 7 is the latest" in said
    assert said.endswith("twice: in[0] offsets 50 to 69")


def test_a_partition_that_the_older_one_does_not_know_is_named_too() -> None:
    said = consequence(with_second_partition(metadata(7), 9), metadata(5))
    assert said is not None
    assert said.endswith("in[0] offsets 50 to 69, in[1] what is read again before offset 9")


def test_starting_afresh_names_everything() -> None:
    said = consequence(metadata(7), None)
    assert said is not None
    assert said.startswith("nothing is restored, as asked")
    assert said.endswith("in[0] what is read again before offset 70")


def test_of_many_partitions_ten_are_named() -> None:
    positions = tuple(PartitionPosition(TopicPartition("in", each), "id", Position(9)) for each in range(1_000))
    [snapshot] = metadata(7).snapshots
    said = consequence(replace(metadata(7), snapshots=(replace(snapshot, positions=positions),)), None)
    assert said is not None
    assert said.endswith("in[9] what is read again before offset 9 and 990 more")


def test_an_older_one_that_stands_at_the_same_offsets_has_no_consequence() -> None:
    assert consequence(metadata(7), replace(metadata(5), snapshots=metadata(7).snapshots)) is None


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
