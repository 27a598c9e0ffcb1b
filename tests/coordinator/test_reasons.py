"""Why checkpoints fail, which failures count, and how many are tolerable."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.coordinator.kit import INTERVAL, JOB, SETTINGS, TIMEOUT, FaultyStorage, Scene
from twopc import events
from twopc.protocol.checkpoints import CheckpointKind, FailureReason
from twopc.protocol.messages import Failed


def reason_of(scene: Scene) -> FailureReason | None:
    return scene.told(events.CheckpointAborted)[-1].reason


def test_a_decline() -> None:
    scene = Scene()
    scene.run()
    scene.wait(INTERVAL)
    scene.decline(0, 1)
    assert scene.told(events.CheckpointDeclined)[-1].subtask == 0
    assert reason_of(scene) is FailureReason.CHECKPOINT_DECLINED


def test_a_time_out() -> None:
    scene = Scene()
    scene.run()
    scene.wait(INTERVAL)
    scene.wait(TIMEOUT)
    assert reason_of(scene) is FailureReason.CHECKPOINT_EXPIRED


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        (b"checkpoint-reserved", FailureReason.IO_EXCEPTION),
        (b"checkpoint-metadata", FailureReason.FINALIZE_CHECKPOINT_FAILURE),
        (b"checkpoint-completed", FailureReason.FINALIZE_CHECKPOINT_FAILURE),
    ],
)
def test_a_disk_that_is_full(kind: bytes, reason: FailureReason) -> None:
    disk = FaultyStorage()
    scene = Scene(disk)
    scene.run()
    disk.is_full = lambda name, data: kind in data
    scene.wait(INTERVAL)
    if reason is FailureReason.FINALIZE_CHECKPOINT_FAILURE:
        scene.ack(0, 1)
        scene.ack(1, 1)
    assert reason_of(scene) is reason


def test_an_id_whose_storing_failed_is_never_used_and_the_next_is_tried_an_interval_later() -> None:
    disk = FaultyStorage()
    scene = Scene(disk)
    scene.run()
    disk.is_full = lambda name, data: b"checkpoint-reserved" in data
    scene.wait(INTERVAL)
    assert scene.jobs.deadline() == scene.clock.now().monotonic_ms + INTERVAL
    disk.is_full = lambda name, data: False
    scene.wait(INTERVAL)
    assert scene.told(events.CheckpointTriggered)[-1].checkpoint_id == 2


def test_the_failure_of_a_subtask() -> None:
    scene = Scene()
    scene.run()
    scene.wait(INTERVAL)
    scene.say(0, Failed("UserCodeError", "bad record", False))
    assert reason_of(scene) is FailureReason.TASK_FAILURE


def test_too_many_failures_fail_the_job_and_what_else_is_in_flight() -> None:
    scene = Scene(settings=replace(SETTINGS, max_concurrent=2, tolerable_failures=0))
    scene.run()
    scene.wait(INTERVAL)
    scene.wait(INTERVAL)
    scene.decline(0, 2)
    reasons = [event.reason for event in scene.told(events.CheckpointAborted)]
    assert reasons == [FailureReason.CHECKPOINT_DECLINED, FailureReason.JOB_FAILURE]


def test_of_two_that_expire_together_the_second_ends_with_the_job_that_the_first_one_failed() -> None:
    scene = Scene(settings=replace(SETTINGS, max_concurrent=2, tolerable_failures=0))
    scene.run()
    scene.wait(INTERVAL)
    scene.ask(CheckpointKind.MANUAL)
    scene.wait(TIMEOUT)
    aborted = [(event.checkpoint_id, event.reason) for event in scene.told(events.CheckpointAborted)]
    assert aborted == [(1, FailureReason.CHECKPOINT_EXPIRED), (2, FailureReason.JOB_FAILURE)]


def test_a_new_attempt() -> None:
    scene = Scene()
    scene.run()
    scene.wait(INTERVAL)
    scene.start()
    assert reason_of(scene) is FailureReason.CHECKPOINT_COORDINATOR_SUSPEND


def test_the_end_of_the_attempt() -> None:
    scene = Scene()
    scene.run()
    scene.wait(INTERVAL)
    scene.end()
    assert reason_of(scene) is FailureReason.CHECKPOINT_COORDINATOR_SHUTDOWN


def test_as_many_failures_in_a_row_as_are_tolerable_do_not_fail_the_attempt() -> None:
    scene = Scene(settings=replace(SETTINGS, tolerable_failures=1))
    scene.run()
    scene.wait(INTERVAL)
    scene.decline(0, 1)
    assert not scene.told(events.AttemptFailed)
    scene.wait(INTERVAL)
    scene.decline(0, 2)
    assert scene.told(events.AttemptFailed)


def test_a_savepoint_that_fails_counts_for_nothing() -> None:
    scene = Scene(settings=replace(SETTINGS, tolerable_failures=0))
    scene.run()
    scene.ask(CheckpointKind.SAVEPOINT)
    scene.decline(0, 1)
    assert reason_of(scene) is FailureReason.CHECKPOINT_DECLINED
    assert not scene.told(events.AttemptFailed)


def test_a_manual_checkpoint_that_fails_counts() -> None:
    scene = Scene(settings=replace(SETTINGS, tolerable_failures=0))
    scene.run()
    scene.ask(CheckpointKind.MANUAL)
    scene.decline(0, 1)
    assert scene.told(events.AttemptFailed)


def test_nothing_is_triggered_after_the_attempt_has_failed() -> None:
    scene = Scene(settings=replace(SETTINGS, tolerable_failures=0))
    scene.run()
    scene.wait(INTERVAL)
    scene.ask(CheckpointKind.MANUAL)
    scene.wait(TIMEOUT)
    assert scene.told(events.AttemptFailed)
    assert scene.jobs.describe(JOB).in_flight == ()
    assert [event.checkpoint_id for event in scene.told(events.CheckpointTriggered)] == [1]


def test_every_reason_has_a_meaning() -> None:
    assert all(reason.meaning for reason in FailureReason)
