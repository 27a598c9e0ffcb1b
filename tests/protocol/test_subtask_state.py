"""The subtask's decisions, one fact each."""

import pytest

from twopc.protocol.facts import Committable
from twopc.protocol.ids import CheckpointId, SubtaskIndex
from twopc.protocol.messages import Abort, Complete, Drain, FencedOff, Finish, Trigger
from twopc.protocol.subtask_state import (
    CommitPending,
    End,
    Ignore,
    PreCommitted,
    ReadToEnd,
    SubtaskState,
    TakeCheckpoint,
)


def trigger(number: int, *, final: bool = False) -> Trigger:
    return Trigger(CheckpointId(number), final)


def complete(number: int) -> Complete:
    return Complete(CheckpointId(number))


def pre_committed(number: int) -> PreCommitted:
    committable = Committable(f"txn@{number}", CheckpointId(number), SubtaskIndex(0), {})
    return PreCommitted(CheckpointId(number), () if committable is None else (committable,), ())


def state_after(*numbers: int) -> SubtaskState:
    """A state that has pre-committed these checkpoints."""
    state = SubtaskState()
    for number in numbers:
        state.on(trigger(number))
        state.pre_committed(pre_committed(number))
    return state


def due(state: SubtaskState, number: int) -> list[int]:
    action = state.on(complete(number))
    assert isinstance(action, CommitPending)
    return [entry.checkpoint_id for entry in action.due]


def test_a_trigger_is_taken() -> None:
    assert SubtaskState().on(trigger(1)) == TakeCheckpoint(trigger(1))


@pytest.mark.parametrize("repeated", [1, 2])
def test_a_trigger_that_is_not_greater_than_the_last_one_is_ignored(repeated: int) -> None:
    assert state_after(2).on(trigger(repeated)) == Ignore()


def test_a_repeated_trigger_is_ignored_even_after_its_checkpoint_was_committed() -> None:
    state = state_after(1)
    due(state, 1)
    state.committed(CheckpointId(1))
    assert state.on(trigger(1)) == Ignore()


def test_a_completion_commits_what_is_pending_up_to_it_oldest_first() -> None:
    assert due(state_after(1, 2, 3), 2) == [1, 2]


def test_a_transaction_is_handed_out_for_commit_only_once() -> None:
    state = state_after(1, 2)
    due(state, 1)
    assert due(state, 2) == [2]


def test_a_repeated_completion_is_answered_again_with_nothing_to_commit() -> None:
    state = state_after(1)
    due(state, 1)
    assert due(state, 1) == []


def test_a_late_completion_of_an_older_checkpoint_is_ignored() -> None:
    state = state_after(1, 2)
    due(state, 2)
    assert state.on(complete(1)) == Ignore()


def test_a_completion_leaves_what_a_later_checkpoint_in_flight_has_pre_committed() -> None:
    state = state_after(1, 2)
    due(state, 1)
    state.committed(CheckpointId(1))
    assert [committable.name for committable in state.committables] == ["txn@2"]


def test_an_aborted_checkpoint_keeps_its_transaction_for_the_next_completed_one() -> None:
    state = state_after(1)
    assert state.on(Abort(CheckpointId(1), "expired")) == Ignore()
    state.on(trigger(2))
    state.pre_committed(pre_committed(2))
    assert due(state, 2) == [1, 2]


def test_a_snapshot_carries_what_is_handed_out_until_it_is_known_to_be_committed() -> None:
    state = state_after(1)
    due(state, 1)
    assert [committable.name for committable in state.committables] == ["txn@1"]
    state.committed(CheckpointId(1))
    assert state.committables == ()


def test_an_interval_that_wrote_nothing_has_no_committable() -> None:
    state = SubtaskState()
    state.on(trigger(1))
    state.pre_committed(PreCommitted(CheckpointId(1), (), ()))
    assert state.committables == ()
    assert due(state, 1) == [1]


def test_after_a_final_trigger_nothing_is_read_even_if_it_is_aborted() -> None:
    state = SubtaskState()
    state.on(trigger(1, final=True))
    state.on(Abort(CheckpointId(1), "expired"))
    assert not state.reading
    assert state.on(trigger(2, final=True)) == TakeCheckpoint(trigger(2, final=True))


def test_finish_ends() -> None:
    assert SubtaskState().on(Finish()) == End()


def test_being_fenced_ends_with_the_reason() -> None:
    assert SubtaskState().on(FencedOff("attempt 2 runs")) == End(fenced="attempt 2 runs")


@pytest.mark.parametrize(("stages", "draining"), [((0,), True), ((0, 1), True), ((1,), False)])
def test_what_waits_for_its_time_comes_out_where_a_person_drains_and_not_where_bounded_input_ends(
    stages: tuple[int, ...], draining: bool
) -> None:
    state = SubtaskState()
    assert [state.on(Drain(stage)) for stage in stages] == [ReadToEnd(stage) for stage in stages]
    assert state.draining is draining
