"""Manual checkpoints and savepoints: queued in order, answered always."""

from __future__ import annotations

import pytest

from coordinator.schedule import MOST_REQUESTS
from tests.coordinator.kit import INTERVAL, JOB, TIMEOUT, Scene, checkpoint
from twopc import events
from twopc.errors import ConfigurationError, Fenced, Unavailable
from twopc.protocol.checkpoints import CheckpointKind, FailureReason
from twopc.protocol.messages import Complete, Trigger

MANUAL, SAVEPOINT = CheckpointKind.MANUAL, CheckpointKind.SAVEPOINT


def test_a_request_is_triggered_at_once_and_every_event_of_it_names_it() -> None:
    scene = Scene()
    scene.run()
    scene.ask(SAVEPOINT, "before-upgrade", "r1")
    assert scene.heard(0) == [Trigger(checkpoint(1))]
    scene.ack(0, 1)
    scene.ack(1, 1)
    for event in (scene.told(events.CheckpointTriggered)[-1], scene.told(events.CheckpointCompleted)[-1]):
        assert (event.kind, event.label, event.request_id) == (SAVEPOINT, "before-upgrade", "r1")


def test_savepoints_go_before_manual_checkpoints_and_both_before_the_periodic_one() -> None:
    scene = Scene()
    scene.run()
    scene.wait(INTERVAL)
    for number, kind in enumerate((MANUAL, SAVEPOINT, MANUAL, SAVEPOINT)):
        scene.ask(kind, "", f"r{number}")
    scene.clock.advance(INTERVAL)
    for number in range(1, 6):
        scene.ack(0, number)
        scene.ack(1, number)
    triggered = scene.told(events.CheckpointTriggered)
    assert [event.request_id for event in triggered] == ["", "r1", "r3", "r0", "r2", ""]


def test_a_request_that_is_repeated_is_the_same_request() -> None:
    scene = Scene()
    scene.run()
    scene.ask(MANUAL, "", "r1")
    scene.ask(MANUAL, "", "r1")
    scene.ack(0, 1)
    scene.ack(1, 1)
    assert len(scene.told(events.CheckpointTriggered, 1)) == 1
    scene.ask(MANUAL, "", "r1")
    assert not scene.told(events.CheckpointTriggered, 2)


def test_a_request_while_no_attempt_runs_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="no attempt"):
        Scene().ask(MANUAL, "", "r1")


def test_a_request_while_the_job_is_stopping_is_refused() -> None:
    scene = Scene()
    scene.run()
    scene.stop()
    with pytest.raises(ConfigurationError, match="stopping"):
        scene.ask(MANUAL, "", "r1")


@pytest.mark.parametrize("kind", [CheckpointKind.PERIODIC, CheckpointKind.FINAL])
def test_only_manual_checkpoints_and_savepoints_can_be_asked_for(kind: CheckpointKind) -> None:
    scene = Scene()
    scene.run()
    with pytest.raises(ConfigurationError, match="can't be asked for"):
        scene.ask(kind, "", "r1")


@pytest.mark.parametrize("label", ["two\nlines", "x" * 129])
def test_a_label_that_would_spoil_a_list_is_refused(label: str) -> None:
    scene = Scene()
    scene.run()
    with pytest.raises(ConfigurationError, match="label"):
        scene.ask(SAVEPOINT, label, "r1")


def test_the_queue_is_bounded() -> None:
    scene = Scene()
    scene.run()
    for number in range(MOST_REQUESTS + 1):
        scene.ask(MANUAL, "", f"r{number}")
    with pytest.raises(Unavailable, match="TOO_MANY_CHECKPOINT_REQUESTS"):
        scene.ask(MANUAL, "", "one-more")


def test_whoever_waits_is_answered_when_the_attempt_ends() -> None:
    scene = Scene()
    scene.run()
    scene.ask(MANUAL, "", "in-flight")
    scene.ask(SAVEPOINT, "", "queued")
    scene.end()
    aborted = scene.told(events.CheckpointAborted)
    assert [(event.request_id, event.checkpoint_id) for event in aborted] == [("in-flight", 1), ("queued", 0)]
    assert {event.reason for event in aborted} == {FailureReason.CHECKPOINT_COORDINATOR_SHUTDOWN}


def test_whoever_waits_for_subtasks_that_do_not_attach_is_answered_after_the_checkpoint_time_out() -> None:
    scene = Scene()
    scene.start()
    scene.attach(0)
    scene.ask(SAVEPOINT, "", "r1")
    scene.wait(TIMEOUT - 1)
    assert not scene.told(events.CheckpointAborted, 0)
    scene.wait(1)
    event = scene.told(events.CheckpointAborted)[-1]
    assert (event.request_id, event.reason) == ("r1", FailureReason.NOT_ALL_REQUIRED_TASKS_RUNNING)


def test_a_job_is_described_with_all_that_is_known_of_it() -> None:
    scene = Scene()
    scene.run()
    scene.complete(1)
    scene.ask(SAVEPOINT, "mine", "r1")
    scene.ask(MANUAL, "", "r2")
    scene.ack(1, 2)
    found = scene.jobs.describe(JOB)
    assert (found.phase, found.attempt, found.parallelism, found.completed) == ("checkpoint in flight", 1, 2, 1)
    assert [(each.subtask, each.attached, each.pid, each.committed) for each in found.subtasks] == [
        (0, True, 100, 1),
        (1, True, 101, 1),
    ]
    assert [(each.checkpoint_id, each.label, each.acknowledged) for each in found.in_flight] == [(2, "mine", (1,))]
    assert [each.request_id for each in found.queued] == ["r2"]
    assert [(each.checkpoint_id, each.kind, each.size_bytes) for each in found.kept] == [(1, "periodic", 20)]


def test_the_last_ten_failures_are_described_with_their_reasons() -> None:
    scene = Scene()
    for _ in range(3):
        scene.run()
        for _ in range(4):
            scene.wait(INTERVAL)
            scene.decline(0, scene.jobs.describe(JOB).in_flight[0].checkpoint_id)
    found = scene.jobs.describe(JOB)
    assert found.failed == 12
    assert [each.checkpoint_id for each in found.failures] == list(range(3, 13))
    assert {each.reason for each in found.failures} == {FailureReason.CHECKPOINT_DECLINED}


def test_jobs_that_are_only_stored_have_names_too() -> None:
    scene = Scene()
    scene.run()
    assert scene.jobs.names() == (JOB, "stored")


def test_a_savepoint_is_completed_like_any_other() -> None:
    scene = Scene()
    scene.run()
    scene.ask(SAVEPOINT, "", "r1")
    scene.ack(0, 1, "t0")
    scene.ack(1, 1, "t1")
    assert scene.heard(0)[-1] == Complete(checkpoint(1))


def test_whoever_waits_is_answered_when_another_coordinator_has_taken_the_job_over() -> None:
    scene, rival = Scene(), Scene()
    rival.storage = scene.storage
    scene.start()
    scene.ask(SAVEPOINT, "", "r1")
    rival.restart()
    rival.start()
    scene.start()
    event = scene.told(events.CheckpointAborted)[-1]
    assert (event.request_id, event.reason) == ("r1", FailureReason.CHECKPOINT_COORDINATOR_SUSPEND)


def test_whoever_waits_is_answered_when_storing_the_id_shows_that_another_coordinator_owns_the_job() -> None:
    scene, rival = Scene(), Scene()
    rival.storage = scene.storage
    scene.run()
    rival.restart()
    rival.start()
    with pytest.raises(Fenced):
        scene.ask(SAVEPOINT, "", "r1")
    event = scene.told(events.CheckpointAborted)[-1]
    assert (event.request_id, event.reason) == ("r1", FailureReason.CHECKPOINT_COORDINATOR_SUSPEND)
