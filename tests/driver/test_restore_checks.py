"""What a person is told whose job begins with empty states in the middle of its input."""

from __future__ import annotations

from collections.abc import Collection

import pytest

from tests.driver.test_lost_transactions import metadata
from twopc.driver.restore_checks import emptied_states, refuse_unknown_middle
from twopc.errors import ConfigurationError
from twopc.kafka.positions.partition_position import input_of
from twopc.kafka.source import KafkaSource
from twopc.protocol.facts import SplitPosition
from twopc.source import FollowerStanding, Split


def splits(*starts: int) -> list[Split]:
    return [Split(f"in[{index}]", index, [start, "topic-id"], None) for index, start in enumerate(starts)]


def test_states_that_begin_empty_in_the_middle_of_the_input_are_named() -> None:
    said = emptied_states({"seen", "count"}, splits(0, 7, 9), KafkaSource("in").skips, "checkpoints")
    assert said is not None
    assert said.startswith("there is no checkpoint in checkpoints: states (count, seen) begin empty")
    assert "in[1]@7 (and in 1 more)" in said
    assert "--checkpoint-dir" in said


@pytest.mark.parametrize(("states", "starts"), [((), (7, 9)), (("count",), (0, 0)), (("count",), ())])
def test_nothing_is_said_where_no_state_lacks_anything(states: tuple[str, ...], starts: tuple[int, ...]) -> None:
    assert emptied_states(states, splits(*starts), KafkaSource("in").skips, "checkpoints") is None


def standing(topic: str) -> FollowerStanding:
    return FollowerStanding(ahead=(SplitPosition(f"{topic}[0]", 0, [206, "id"]),))


def test_states_do_not_begin_empty_in_the_middle_of_a_topic_that_the_checkpoint_does_not_know() -> None:
    with pytest.raises(ConfigurationError, match=r"checkpoint 7, .*'other'.*\(seen\).*other\[0\]@206.*--from 7$"):
        refuse_unknown_middle({"seen"}, standing("other"), metadata(7), input_of)


@pytest.mark.parametrize(
    ("states", "group"),
    [({"seen"}, standing("in")), ({"seen"}, FollowerStanding()), ((), standing("other"))],
    ids=["known to the checkpoint", "at the beginning", "no state"],
)
def test_a_restored_checkpoint_is_gone_on_from_where_no_state_lacks_anything(
    states: Collection[str], group: FollowerStanding
) -> None:
    refuse_unknown_middle(states, group, metadata(7), input_of)
