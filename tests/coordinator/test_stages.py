"""The stages of a job that reads what it writes itself: each is ended when all of the one before is committed."""

from __future__ import annotations

from tests.coordinator.kit import INTERVAL, Scene, checkpoint, snapshot
from twopc.protocol.followed_times import FollowedTime, NumberTimes
from twopc.protocol.messages import Abort, Ack, Complete, Drain, EndOfInput, Finish, ToSubtask, Trigger

FIRST, SECOND, LAST = EndOfInput(0, 2), EndOfInput(1, 1), EndOfInput(2)


def ending(scene: Scene, end: EndOfInput) -> list[list[ToSubtask]]:
    """Let both subtasks come to the end of a stage; return what they hear after that."""
    for subtask in (0, 1):
        scene.heard(subtask)
    for subtask in (0, 1):
        scene.say(subtask, end)
    return [scene.heard(subtask) for subtask in (0, 1)]


def done(scene: Scene, number: int) -> None:
    """Let both subtasks do all that a checkpoint asks of them, which was triggered."""
    for subtask in (0, 1):
        scene.ack(subtask, number, f"t{number}-{subtask}")
    for subtask in (0, 1):
        scene.committed(subtask, number)


def told(scene: Scene, *messages: ToSubtask) -> bool:
    return all([each for each in scene.heard(n) if isinstance(each, Drain)] == list(messages) for n in (0, 1))


def test_when_all_have_ended_a_stage_a_checkpoint_that_is_not_final_is_triggered_at_once() -> None:
    scene = Scene()
    scene.run()
    scene.say(0, FIRST)
    assert scene.heard(0) == []
    scene.say(1, FIRST)
    assert [scene.heard(n) for n in (0, 1)] == [[Trigger(checkpoint(1))]] * 2


def test_the_next_stage_ends_when_that_checkpoint_is_committed_everywhere_and_not_before() -> None:
    scene = Scene()
    scene.run()
    ending(scene, FIRST)
    scene.ack(0, 1, "t1-0")
    scene.ack(1, 1, "t1-1")
    assert [scene.heard(n) for n in (0, 1)] == [[Complete(checkpoint(1))]] * 2
    scene.committed(0, 1)
    scene.wait(INTERVAL // 2)
    assert told(scene)
    scene.committed(1, 1)
    assert told(scene, Drain(1))


def test_a_checkpoint_that_was_triggered_before_the_last_of_them_ended_does_not_count() -> None:
    scene = Scene()
    scene.run()
    scene.say(0, FIRST)
    scene.wait(INTERVAL)
    assert [scene.heard(n) for n in (0, 1)] == [[Trigger(checkpoint(1))]] * 2
    scene.say(1, FIRST)
    done(scene, 1)
    assert scene.heard(0) == [Complete(checkpoint(1)), Trigger(checkpoint(2))]
    scene.heard(1)
    done(scene, 2)
    assert told(scene, Drain(1))


def test_the_stages_end_in_order_and_the_job_after_the_last() -> None:
    scene = Scene()
    scene.run()
    assert ending(scene, FIRST) == [[Trigger(checkpoint(1))]] * 2
    done(scene, 1)
    assert told(scene, Drain(1))
    assert ending(scene, SECOND) == [[Trigger(checkpoint(2))]] * 2
    done(scene, 2)
    assert told(scene, Drain(2))
    assert ending(scene, LAST) == [[Trigger(checkpoint(3), final=True)]] * 2
    done(scene, 3)
    assert Finish() in scene.heard(0)


def test_a_subtask_that_has_nothing_to_read_in_later_stages_holds_up_nobody() -> None:
    scene = Scene()
    scene.run()
    scene.say(0, LAST)
    scene.say(1, FIRST)
    assert scene.heard(1) == [Trigger(checkpoint(1))]
    scene.heard(0)
    done(scene, 1)
    assert told(scene, Drain(1))
    scene.say(1, SECOND)
    done(scene, 2)
    scene.say(1, LAST)
    assert scene.heard(0)[-1] == Trigger(checkpoint(3), final=True)


def test_an_aborted_checkpoint_of_a_stages_end_is_followed_by_another() -> None:
    scene = Scene()
    scene.run()
    ending(scene, FIRST)
    scene.decline(0, 1)
    scene.wait(INTERVAL)
    assert [type(each) for each in scene.heard(1)] == [Abort, Trigger]
    done(scene, 2)
    assert told(scene, Drain(1))


def test_who_attaches_again_is_told_which_stage_to_end() -> None:
    scene = Scene()
    scene.run()
    ending(scene, FIRST)
    done(scene, 1)
    scene.detach(1)
    scene.attach(1, last=1)
    assert Drain(1) in scene.heard(1)


def test_a_new_coordinator_takes_one_more_checkpoint_before_it_ends_the_next_stage() -> None:
    scene = Scene()
    scene.run()
    ending(scene, FIRST)
    done(scene, 1)
    scene.restart()
    for subtask in (0, 1):
        scene.attach(subtask, last=1)
    scene.say(0, FIRST)
    scene.say(1, SECOND)
    assert scene.heard(1)[-1] == Trigger(checkpoint(2))
    done(scene, 2)
    assert told(scene, Drain(1))


def test_the_next_stage_ends_when_a_checkpoint_told_no_times_that_its_trigger_had_not_brought() -> None:
    scene = Scene()
    scene.run()
    ending(scene, FIRST)
    times = NumberTimes("by-key-sink", None, 7)
    for number, brought in ((1, ()), (2, (FollowedTime("by-key-sink", 7),))):
        for subtask in (0, 1):
            heard = [each for each in scene.heard(subtask) if isinstance(each, Trigger)]
            assert heard == ([Trigger(checkpoint(number), times=brought)] if number == 2 else [])
        for subtask in (0, 1):
            scene.say(subtask, Ack(checkpoint(number), snapshot(subtask, checkpoint_id=number), times=(times,)))
        assert told(scene)
        for subtask in (0, 1):
            scene.committed(subtask, number)
        if number == 1:
            scene.wait(INTERVAL)
    assert told(scene, Drain(1))


def test_a_new_attempt_begins_with_the_first_stage() -> None:
    scene = Scene()
    scene.run()
    ending(scene, FIRST)
    done(scene, 1)
    scene.run(restart=True)
    assert told(scene)
    ending(scene, FIRST)
    done(scene, 2)
    assert told(scene, Drain(1))


def test_a_stop_does_not_wait_for_the_stages() -> None:
    scene = Scene()
    scene.run()
    scene.stop()
    assert scene.heard(0) == [Trigger(checkpoint(1), final=True)]


def test_a_job_of_one_stage_ends_as_ever() -> None:
    scene = Scene()
    scene.run()
    assert ending(scene, EndOfInput()) == [[Trigger(checkpoint(1), final=True)]] * 2
