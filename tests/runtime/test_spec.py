"""What a subtask is told of the checkpoint that it is restored from."""

from __future__ import annotations

import pytest

from twopc.protocol.facts import SplitPosition, StateHandle, SubtaskSnapshot
from twopc.protocol.ids import SubtaskIndex
from twopc.runtime.spec import concerning
from twopc.source import Split


def snapshot(subtask: int, *partitions: int) -> SubtaskSnapshot:
    positions = tuple(SplitPosition(f"in[{each}]", each, [5, "an-id"]) for each in partitions)
    return SubtaskSnapshot.of(SubtaskIndex(subtask), positions, StateHandle(f"chk-7/subtask-{subtask}", "", 0, 0), ())


def split(partition: int) -> Split:
    return Split(f"in[{partition}]", partition, [5, "an-id"], None)


SNAPSHOTS = (snapshot(0, 0, 2), snapshot(1, 1, 3))


@pytest.mark.parametrize(
    ("subtask", "reads", "concerned"),
    [(0, (0, 2), (0,)), (1, (1, 3), (1,)), (0, (0, 1, 2, 3), (0, 1)), (2, (2,), (0,)), (3, (9,), ()), (1, (), (1,))],
    ids=["its own", "its own, of the other", "of fewer", "of more", "a new partition", "its own state, without input"],
)
def test_it_is_told_of_the_snapshots_that_hold_something_of_its_own(
    subtask: int, reads: tuple[int, ...], concerned: tuple[int, ...]
) -> None:
    found = concerning(SubtaskIndex(subtask), [split(each) for each in reads], SNAPSHOTS)
    assert [each.subtask for each in found] == list(concerned)
