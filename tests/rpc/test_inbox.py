"""A trigger that was said ahead waits until it is due; everything else is there at once."""

from __future__ import annotations

from twopc.protocol.ids import CheckpointId
from twopc.protocol.messages import Abort, Complete, Drain, FencedOff, ToSubtask, Trigger
from twopc.rpc.inbox import Inbox

AHEAD = Trigger(CheckpointId(7), after_ms=100)


def told(*messages: ToSubtask) -> Inbox:
    """What was told at the moment 0."""
    inbox = Inbox()
    for message in messages:
        inbox.put(message, 0.0)
    return inbox


def test_messages_are_taken_once_and_in_their_order() -> None:
    messages: list[ToSubtask] = [Complete(CheckpointId(6)), Trigger(CheckpointId(7)), Drain()]
    inbox = told(*messages)
    assert inbox.take(0.0) == messages
    assert inbox.take(0.0) == []


def test_a_trigger_that_was_said_ahead_is_taken_when_it_is_due_and_once() -> None:
    inbox = told(AHEAD)
    assert inbox.take(0.099) == []
    assert inbox.take(0.1) == [AHEAD]
    assert inbox.take(9.0) == []


def test_others_pass_it() -> None:
    inbox = told(Complete(CheckpointId(6)), AHEAD, FencedOff("another attempt runs"))
    assert inbox.take(0.0) == [Complete(CheckpointId(6)), FencedOff("another attempt runs")]
    assert inbox.take(0.1) == [AHEAD]


def test_it_is_dropped_when_it_is_aborted_before_it_is_due() -> None:
    inbox = told(AHEAD, Abort(CheckpointId(7), "no"))
    assert inbox.take(1.0) == [Abort(CheckpointId(7), "no")]


def test_the_abort_of_another_leaves_it_alone() -> None:
    inbox = told(AHEAD, Abort(CheckpointId(6), "no"))
    assert inbox.take(1.0)[-1] == AHEAD


def test_another_trigger_takes_its_place() -> None:
    later = Trigger(CheckpointId(8))
    assert told(AHEAD, later).take(1.0) == [later]


def test_heard_again_it_is_taken_once() -> None:
    inbox = told(AHEAD)
    inbox.put(AHEAD, 0.05)
    assert inbox.take(1.0) == [AHEAD]


def test_how_long_nothing_is_to_be_taken_is_known() -> None:
    inbox = told(AHEAD)
    assert inbox.empty_for(0.04) == 0.1 - 0.04
    inbox.put(Drain(), 0.04)
    assert inbox.empty_for(0.04) == 0.0
    inbox.take(0.2)
    assert inbox.empty_for(0.2) == float("inf")
