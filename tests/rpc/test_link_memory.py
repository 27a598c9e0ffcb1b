"""What a subtask says again after its stream broke."""

from __future__ import annotations

import pytest

from tests.coordinator.kit import checkpoint, snapshot
from twopc.errors import Fenced
from twopc.protocol.messages import (
    Abort,
    Ack,
    Committed,
    Complete,
    Decline,
    EndOfInput,
    Failed,
    FencedOff,
    Finish,
    Progress,
    Trigger,
    Welcome,
)
from twopc.rpc.link_memory import LinkMemory


def ack(number: int) -> Ack:
    return Ack(checkpoint(number), snapshot(0))


def test_an_acknowledgement_is_repeated_until_the_checkpoint_completes() -> None:
    memory = LinkMemory()
    memory.note_received(Trigger(checkpoint(1)))
    memory.note_sent(ack(1))
    assert memory.repeat() == [ack(1)]
    memory.note_received(Complete(checkpoint(1)))
    assert memory.repeat() == []


def test_an_acknowledgement_is_repeated_until_the_checkpoint_is_aborted() -> None:
    memory = LinkMemory()
    memory.note_sent(ack(1))
    memory.note_received(Abort(checkpoint(1), "time-out"))
    assert memory.repeat() == []


def test_the_abort_of_another_checkpoint_answers_nothing() -> None:
    memory = LinkMemory()
    memory.note_sent(ack(2))
    memory.note_received(Abort(checkpoint(1), "time-out"))
    assert memory.repeat() == [ack(2)]


def test_the_next_trigger_answers_nothing_because_both_checkpoints_may_be_in_flight() -> None:
    memory = LinkMemory()
    memory.note_sent(Decline(checkpoint(1), "disk full"))
    memory.note_received(Trigger(checkpoint(2)))
    memory.note_sent(ack(2))
    assert memory.repeat() == [Decline(checkpoint(1), "disk full"), ack(2)]


def test_the_completion_of_an_older_checkpoint_leaves_the_newer_acknowledgement() -> None:
    memory = LinkMemory()
    memory.note_sent(ack(2))
    memory.note_received(Complete(checkpoint(1)))
    assert memory.repeat() == [ack(2)]


def test_only_the_last_commit_is_repeated() -> None:
    memory = LinkMemory()
    memory.note_sent(Committed(checkpoint(1)))
    memory.note_sent(Committed(checkpoint(2)))
    assert memory.repeat() == [Committed(checkpoint(2))]


def test_a_commit_that_is_reported_late_does_not_hide_a_greater_one() -> None:
    memory = LinkMemory()
    memory.note_sent(Committed(checkpoint(2)))
    memory.note_sent(Committed(checkpoint(1)))
    assert memory.repeat() == [Committed(checkpoint(2))]


def test_a_failure_is_repeated_and_progress_is_not() -> None:
    memory = LinkMemory()
    memory.note_sent(Progress(1, 1, None, None))
    memory.note_sent(Failed("Unavailable", "the broker is gone", True))
    assert memory.repeat() == [Failed("Unavailable", "the broker is gone", True)]


def test_what_the_next_attach_tells_is_remembered() -> None:
    memory = LinkMemory()
    memory.note_received(Trigger(checkpoint(3)))
    memory.note_received(Complete(checkpoint(3)))
    memory.note_sent(EndOfInput())
    assert (memory.last_checkpoint_id, memory.end_of_input) == (3, True)
    assert memory.repeat() == []


def test_the_end_of_a_stage_is_repeated_until_the_end_of_all_has_come() -> None:
    memory = LinkMemory()
    memory.note_sent(EndOfInput(0, 2))
    memory.note_sent(EndOfInput(1, 1))
    assert (memory.repeat(), memory.end_of_input) == ([EndOfInput(1, 1)], False)
    memory.note_sent(EndOfInput(2))
    assert (memory.repeat(), memory.end_of_input) == ([], True)


def test_a_subtask_may_open_its_sink_once_it_was_welcomed() -> None:
    memory = LinkMemory()
    assert not memory.may_open()
    memory.note_received(Welcome())
    assert memory.may_open()


@pytest.mark.parametrize("last", [FencedOff("attempt 3 owns the job"), Finish()], ids=["fenced off", "finished"])
@pytest.mark.parametrize("before", [[], [Welcome()]], ids=["at once", "after the welcome"])
def test_a_subtask_that_is_dismissed_before_it_began_never_opens_its_sink(
    before: list[Welcome], last: FencedOff | Finish
) -> None:
    memory = LinkMemory()
    for message in (*before, last):
        memory.note_received(message)
    with pytest.raises(Fenced, match="turned away before it began"):
        memory.may_open()
