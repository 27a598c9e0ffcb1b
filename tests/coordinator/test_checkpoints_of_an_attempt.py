"""When checkpoints are triggered, completed and aborted."""

from __future__ import annotations

from tests.coordinator.kit import INTERVAL, JOB, TIMEOUT, FaultyStorage, Scene, checkpoint, snapshot
from twopc import events
from twopc.protocol.followed_times import FollowedTime, NumberTimes
from twopc.protocol.ids import AttemptId
from twopc.protocol.messages import Abort, Ack, Committed, Complete, Failed, FencedOff, Trigger


def aborted(scene: Scene, subtask: int) -> list[int]:
    return [message.checkpoint_id for message in scene.heard(subtask) if isinstance(message, Abort)]


def test_nothing_is_triggered_before_all_subtasks_are_attached() -> None:
    scene = Scene()
    scene.start(parallelism=2)
    scene.attach(0)
    scene.wait(10 * INTERVAL)
    assert scene.heard(0) == []


def test_the_first_checkpoint_is_number_one_an_interval_after_all_are_attached() -> None:
    scene = Scene()
    scene.run()
    scene.wait(INTERVAL - 1)
    assert scene.heard(0) == []
    scene.wait(1)
    assert scene.heard(0) == [Trigger(checkpoint(1))]
    assert scene.heard(1) == [Trigger(checkpoint(1))]


def test_a_checkpoint_completes_with_the_last_acknowledgement() -> None:
    scene = Scene()
    scene.run()
    scene.wait(INTERVAL)
    scene.ack(1, 1)
    assert scene.heard(1) == [Trigger(checkpoint(1))]
    scene.ack(0, 1)
    assert scene.heard(0) == [Trigger(checkpoint(1)), Complete(checkpoint(1))]
    assert scene.heard(1) == [Complete(checkpoint(1))]


def test_one_subtask_acknowledging_twice_does_not_stand_in_for_another() -> None:
    scene = Scene()
    scene.run()
    scene.wait(INTERVAL)
    scene.ack(0, 1)
    scene.ack(0, 1)
    assert not scene.told(events.CheckpointCompleted, 1)


def test_one_checkpoint_at_a_time() -> None:
    scene = Scene()
    scene.run()
    scene.wait(INTERVAL)
    scene.wait(3 * INTERVAL)
    assert not scene.told(events.CheckpointTriggered, 2)


def test_an_acknowledgement_of_an_older_checkpoint_counts_for_nothing() -> None:
    scene = Scene()
    scene.run()
    scene.wait(INTERVAL)
    scene.decline(0, 1)
    scene.wait(INTERVAL)
    scene.ack(0, 1)
    scene.ack(1, 1)
    assert scene.told(events.CheckpointTriggered, 2)
    assert not scene.told(events.CheckpointCompleted)


def test_a_trigger_tells_the_times_of_the_last_checkpoint_that_is_committed_everywhere() -> None:
    scene = Scene()
    scene.run()
    for number, times in ((1, (3, 7)), (2, (9, 8))):
        scene.wait(INTERVAL)
        for subtask, time in enumerate(times):
            scene.say(
                subtask,
                Ack(
                    checkpoint(number),
                    snapshot(subtask, checkpoint_id=number),
                    times=(NumberTimes("windows", time, time),),
                ),
            )
        for subtask in range(len(times)) if number == 1 else ():
            scene.say(subtask, Committed(checkpoint(number)))
    scene.wait(INTERVAL)
    triggers = [message for message in scene.heard(0) if isinstance(message, Trigger)]
    assert [trigger.times for trigger in triggers] == [(), (FollowedTime("windows", 3),), (FollowedTime("windows", 3),)]


def test_a_late_acknowledgement_of_an_aborted_checkpoint_is_answered_with_its_abort() -> None:
    scene = Scene()
    scene.run()
    scene.wait(INTERVAL)
    scene.decline(0, 1)
    scene.heard(1)
    scene.ack(1, 1)
    assert aborted(scene, 1) == [1]


def test_an_acknowledgement_from_an_older_attempt_counts_for_nothing() -> None:
    scene = Scene()
    scene.run(parallelism=1)
    old = dict(scene.session_of)
    scene.run(parallelism=1)
    scene.wait(INTERVAL)
    new = dict(scene.session_of)
    scene.session_of = old
    scene.ack(0, 1)
    assert not scene.told(events.CheckpointCompleted, 1)
    scene.session_of = new
    scene.ack(0, 1)
    assert scene.told(events.CheckpointCompleted, 1)


def test_a_snapshot_of_another_subtask_aborts_the_checkpoint() -> None:
    scene = Scene()
    scene.run()
    scene.wait(INTERVAL)
    scene.say(0, Ack(checkpoint(1), snapshot(1)))
    assert aborted(scene, 0) == [1]


def test_a_decline_aborts_the_checkpoint_everywhere_and_the_next_one_goes_on() -> None:
    scene = Scene()
    scene.run()
    scene.wait(INTERVAL)
    scene.ack(1, 1)
    scene.decline(0, 1, "disk full")
    assert "disk full" in scene.told(events.CheckpointAborted)[-1].message
    assert aborted(scene, 0) == [1]
    assert aborted(scene, 1) == [1]
    scene.complete(2)


def test_a_checkpoint_that_takes_too_long_is_aborted() -> None:
    scene = Scene()
    scene.run()
    scene.wait(INTERVAL)
    scene.ack(0, 1)
    scene.wait(TIMEOUT - 1)
    assert not scene.told(events.CheckpointAborted, 1)
    scene.wait(1)
    assert "subtask 1" in scene.told(events.CheckpointAborted)[-1].message
    assert aborted(scene, 0) == [1]


def test_an_acknowledgement_that_comes_with_the_time_out_still_counts() -> None:
    scene = Scene()
    scene.run(parallelism=1)
    scene.wait(INTERVAL)
    scene.clock.advance(TIMEOUT)
    scene.ack(0, 1)
    assert scene.told(events.CheckpointCompleted, 1)


def test_three_failures_in_a_row_are_tolerated_and_a_fourth_fails_the_attempt() -> None:
    scene = Scene()
    scene.run()
    for number in (1, 2, 3):
        scene.wait(INTERVAL)
        scene.decline(0, number)
    assert not scene.told(events.AttemptFailed)
    scene.wait(INTERVAL)
    scene.decline(0, 4)
    failed = scene.told(events.AttemptFailed)[-1]
    assert failed.restartable
    scene.wait(10 * INTERVAL)
    assert not scene.told(events.CheckpointTriggered, 5)


def test_a_completed_checkpoint_forgives_the_failures_before_it() -> None:
    scene = Scene()
    scene.run()
    for number in (1, 2, 3):
        scene.wait(INTERVAL)
        scene.decline(0, number)
    scene.heard(0), scene.heard(1)
    scene.complete(4)
    for number in (5, 6, 7):
        scene.wait(INTERVAL)
        scene.decline(0, number)
    assert not scene.told(events.AttemptFailed)


def test_the_failure_of_a_subtask_aborts_what_is_pending_and_ends_the_taking_of_checkpoints() -> None:
    scene = Scene()
    scene.run()
    scene.wait(INTERVAL)
    scene.say(0, Failed("UserCodeError", "flights[3]@17: boom", restartable=False))
    failed = scene.told(events.AttemptFailed)[-1]
    assert (failed.subtask, failed.error_type, failed.restartable) == (0, "UserCodeError", False)
    assert "boom" in failed.message
    assert aborted(scene, 1) == [1]
    scene.wait(10 * INTERVAL)
    assert not scene.told(events.CheckpointTriggered, 2)


def test_only_the_first_failure_is_told() -> None:
    scene = Scene()
    scene.run()
    scene.say(0, Failed("UserCodeError", "boom", restartable=False))
    scene.say(1, Failed("Unavailable", "the other one is gone", restartable=True))
    assert len(scene.told(events.AttemptFailed)) == 1


def test_a_new_attempt_fences_the_subtasks_of_the_one_before() -> None:
    scene = Scene()
    scene.run(parallelism=1)
    scene.heard(0)
    scene.start(parallelism=1)
    (message,) = scene.heard(0)
    assert message == FencedOff("attempt 2 owns the job now (pid 7 on here)")


def test_a_subtask_of_an_older_attempt_that_attaches_is_fenced_off() -> None:
    scene = Scene()
    scene.start()
    scene.start()
    scene.attach(0, attempt=1)
    (message,) = scene.heard(0)
    assert isinstance(message, FencedOff)
    assert not scene.told(events.SubtaskAttached)


def test_attempts_and_ids_go_on_growing_over_attempts_and_restarts() -> None:
    scene = Scene()
    scene.run()
    scene.complete(1)
    scene.run()
    scene.wait(INTERVAL)
    scene.restart()
    scene.run()
    assert scene.attempt == AttemptId(3)
    scene.wait(INTERVAL)
    assert scene.heard(0) == [Trigger(checkpoint(3))]


def test_an_id_whose_storing_failed_is_never_used_again() -> None:
    disk = FaultyStorage()
    scene = Scene(disk)
    scene.run()
    disk.is_full = lambda name, data: b"checkpoint-reserved" in data
    scene.wait(INTERVAL)
    assert scene.heard(0) == []
    disk.is_full = lambda name, data: False
    scene.wait(INTERVAL)
    assert scene.heard(0) == [Trigger(checkpoint(2))]


def test_a_disk_that_is_full_at_the_completion_aborts_the_checkpoint_and_the_job_goes_on() -> None:
    for kind in (b"checkpoint-metadata", b"checkpoint-completed"):
        disk = FaultyStorage()
        scene = Scene(disk)
        scene.run()
        scene.wait(INTERVAL)
        disk.is_full = lambda name, data, kind=kind: kind in data  # type: ignore[misc]
        scene.ack(0, 1)
        scene.ack(1, 1)
        assert aborted(scene, 0) == [1]
        assert not scene.told(events.CheckpointCompleted, 1)
        assert "No space left" in scene.told(events.CheckpointAborted)[-1].message
        disk.is_full = lambda name, data: False
        scene.heard(1)
        scene.complete(2)


def test_the_driver_ending_an_attempt_aborts_what_is_pending_and_late_messages_are_ignored() -> None:
    scene = Scene()
    scene.run(parallelism=1)
    scene.wait(INTERVAL)
    scene.end()
    assert aborted(scene, 0) == [1]
    scene.ack(0, 1)
    assert not scene.told(events.CheckpointCompleted, 1)
    scene.wait(10 * INTERVAL)
    assert scene.jobs.deadline() is None


def _status(scene: Scene) -> events.JobStatus:
    status = scene.jobs.status(JOB)[0]
    assert isinstance(status, events.JobStatus)
    return status


def test_the_status_says_where_the_job_stands() -> None:
    scene = Scene()
    assert _status(scene).message == "no attempt"
    scene.start(parallelism=2)
    scene.attach(0)
    assert _status(scene).message == "waiting for subtasks (1 of 2 attached)"
    scene.attach(1)
    assert _status(scene).message == "running"


def test_one_who_starts_to_watch_after_a_failure_is_told_of_it() -> None:
    scene = Scene()
    scene.run()
    scene.say(0, Failed("UserCodeError", "boom", restartable=False))
    status, failed = scene.jobs.status(JOB)
    assert isinstance(status, events.JobStatus)
    assert isinstance(failed, events.AttemptFailed)
    assert (status.message, failed.error_type) == ("failed", "UserCodeError")
