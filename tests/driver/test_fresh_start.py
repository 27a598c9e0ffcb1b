"""What a person is told whose job begins with empty states in the middle of its input."""

from __future__ import annotations

import pytest

from twopc.driver.fresh_start import emptied
from twopc.protocol.ids import Position, TopicPartition
from twopc.source import Split


def splits(*starts: int) -> list[Split]:
    return [Split(TopicPartition("in", index), "topic-id", Position(start), None) for index, start in enumerate(starts)]


def test_states_that_begin_empty_in_the_middle_of_the_input_are_named() -> None:
    said = emptied({"seen", "count"}, splits(0, 7, 9), "checkpoints")
    assert said is not None
    assert said.startswith("there is no checkpoint in checkpoints: states (count, seen) begin empty")
    assert "in[1]@7 (and in 1 more)" in said
    assert "--checkpoint-dir" in said


@pytest.mark.parametrize(("states", "starts"), [((), (7, 9)), (("count",), (0, 0)), (("count",), ())])
def test_nothing_is_said_where_no_state_lacks_anything(states: tuple[str, ...], starts: tuple[int, ...]) -> None:
    assert emptied(states, splits(*starts), "checkpoints") is None
