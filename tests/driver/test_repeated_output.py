"""What a person is told who restores another checkpoint than the latest."""

from __future__ import annotations

import logging
from dataclasses import replace

import pytest

from tests.driver.test_lost_transactions import metadata
from tests.snapshots import changed
from twopc.driver.restore_checks import repeated_output, repeated_output_of_copy
from twopc.kafka.source import KafkaSource
from twopc.logs import NEVER_HIDDEN, configure_logging
from twopc.protocol.facts import CheckpointMetadata, SplitPosition
from twopc.source import Split

PRECEDES = KafkaSource("in").precedes


def with_second_partition(found: CheckpointMetadata, position: int) -> CheckpointMetadata:
    [snapshot] = found.snapshots
    more = SplitPosition("in[1]", 1, [position, "id"])
    return replace(found, snapshots=(changed(snapshot, positions=(*snapshot.positions, more)),))


def begun(*starts: int, topic_id: str = "id") -> list[Split]:
    return [Split(f"in[{number}]", number, [start, topic_id], None) for number, start in enumerate(starts)]


def test_the_latest_has_no_consequence() -> None:
    assert repeated_output(metadata(7), metadata(7), begun(70), PRECEDES) is None
    assert repeated_output(None, None, begun(0), PRECEDES) is None


def test_a_healed_latest_has_no_consequence_where_it_is_read_again() -> None:
    assert repeated_output(metadata(7), metadata(7), begun(50), PRECEDES) is None


def test_an_older_one_names_the_input_whose_output_comes_twice() -> None:
    said = repeated_output(
        with_second_partition(metadata(7), 9), with_second_partition(metadata(5), 9), begun(50, 9), PRECEDES
    )
    assert said is not None
    assert "checkpoint 5 is restored, as asked, while checkpoint 7 is the latest" in said
    assert said.endswith("twice: in[0]@50 up to 70")


def test_a_partition_that_the_older_one_does_not_know_is_named_from_where_it_is_read() -> None:
    said = repeated_output(with_second_partition(metadata(7), 9), metadata(5), begun(50, 3), PRECEDES)
    assert said is not None
    assert said.endswith("in[0]@50 up to 70, in[1]@3 up to 9")


def test_starting_afresh_names_everything_that_is_read_again() -> None:
    said = repeated_output(metadata(7), None, begun(0), PRECEDES)
    assert said is not None
    assert said.startswith("nothing is restored, as asked")
    assert said.endswith("in[0]@0 up to 70")


def test_starting_afresh_where_the_group_stands_has_no_consequence() -> None:
    assert repeated_output(metadata(7), None, begun(70), PRECEDES) is None


def test_starting_after_what_was_read_has_no_consequence() -> None:
    assert repeated_output(metadata(7), None, begun(90), PRECEDES) is None


def test_a_topic_that_was_created_again_is_not_read_again() -> None:
    assert repeated_output(metadata(7), None, begun(0, topic_id="another"), PRECEDES) is None


def test_a_partition_that_is_not_read_any_more_is_not_read_again() -> None:
    assert repeated_output(metadata(7), metadata(5), [], PRECEDES) is None


def test_of_many_partitions_ten_are_named() -> None:
    positions = tuple(SplitPosition(f"in[{each}]", each, [9, "id"]) for each in range(1_000))
    [snapshot] = metadata(7).snapshots
    latest = replace(metadata(7), snapshots=(changed(snapshot, positions=positions),))
    said = repeated_output(latest, None, begun(*[0] * 1_000), PRECEDES)
    assert said is not None
    assert said.endswith("in[9]@0 up to 9 and 990 more")


def test_a_copy_names_the_input_whose_output_may_come_twice() -> None:
    said = repeated_output_of_copy(with_second_partition(metadata(7), 9))
    assert said.endswith("twice: from in[0]@70 on, from in[1]@9 on")


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
