"""A job that reads what it writes itself, and goes back to a checkpoint before the latest."""

from __future__ import annotations

from dataclasses import replace

import pytest

from twopc.driver.restore_checks import given_up
from twopc.errors import ConfigurationError
from twopc.protocol.checkpoints import CheckpointKind
from twopc.protocol.facts import CheckpointMetadata, SplitPosition, StateHandle, SubtaskSnapshot
from twopc.protocol.ids import AttemptId, CheckpointId, SubtaskIndex
from twopc.protocol.planned_starts import Witnessed


def checkpoint(number: int, *, finished: bool = False) -> CheckpointMetadata:
    positions = [SplitPosition("in[0]", 0, [9, "id"], "in"), SplitPosition("j-k-repartition[0]", 0, [5, "id"], "k")]
    state = StateHandle.inline(f"chk-{number}/subtask-0", {}, 0, 0)
    snapshot = SubtaskSnapshot.of(SubtaskIndex(0), positions, state, (), finished)
    return CheckpointMetadata("j", CheckpointId(number), AttemptId(2), 1, CheckpointKind.PERIODIC, 0, 0, (snapshot,))


def test_an_older_checkpoint_is_refused_with_the_ways_on() -> None:
    with pytest.raises(ConfigurationError, match=r"checkpoint 7.*older.*8.*j-k-repartition\[0\].*--from none"):
        given_up(checkpoint(8), checkpoint(7), {"k"})


def test_one_with_which_all_was_read_gives_up_what_was_written_since() -> None:
    passed = given_up(checkpoint(8), checkpoint(7, finished=True), {"k"})
    assert [held.split for held in passed] == ["j-k-repartition[0]"]


def test_one_that_a_single_subtask_had_not_finished_with_is_refused() -> None:
    whole, part = checkpoint(7, finished=True), checkpoint(7)
    both = replace(whole, parallelism=2, snapshots=(*whole.snapshots, *part.snapshots))
    with pytest.raises(ConfigurationError, match="older than the latest"):
        given_up(checkpoint(8), both, {"k"})


def test_a_copy_of_a_job_that_has_gone_on_since_goes_back_too() -> None:
    later = Witnessed(CheckpointId(9), AttemptId(3))
    with pytest.raises(ConfigurationError, match=r"checkpoint 8.*older than the latest, 9"):
        given_up(checkpoint(8), checkpoint(8), {"k"}, later)
    whole = checkpoint(8, finished=True)
    assert len(given_up(whole, whole, {"k"}, later)) == 1
    assert given_up(whole, whole, {"k"}, Witnessed(CheckpointId(8), AttemptId(2))) == ()


def test_the_latest_goes_on() -> None:
    assert given_up(checkpoint(8), checkpoint(8), {"k"}) == ()
    assert given_up(checkpoint(8, finished=True), checkpoint(8, finished=True), {"k"}) == ()


def test_to_begin_anew_is_let_through() -> None:
    assert given_up(checkpoint(8), None, {"k"}) == ()


def test_a_job_that_reads_nothing_of_its_own_may_go_back() -> None:
    assert given_up(checkpoint(8), checkpoint(7), ()) == ()
