"""More than one checkpoint at a time: each has its own acknowledgements, declines and time-out."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.coordinator.kit import INTERVAL, JOB, SETTINGS, TIMEOUT, Scene, checkpoint
from twopc import events
from twopc.errors import ConfigurationError
from twopc.protocol.attempts import CheckpointSettings
from twopc.protocol.checkpoints import CheckpointKind, FailureReason
from twopc.protocol.messages import Abort, Complete, Trigger


def scene_with(concurrent: int, **settings: int) -> Scene:
    scene = Scene(settings=replace(SETTINGS, max_concurrent=concurrent, **settings))
    scene.run()
    return scene


def in_flight(scene: Scene) -> list[int]:
    return [each.checkpoint_id for each in scene.jobs.describe(JOB).in_flight]


def test_as_many_are_triggered_as_are_allowed_an_interval_apart() -> None:
    scene = scene_with(2)
    scene.wait(INTERVAL)
    assert in_flight(scene) == [1]
    scene.wait(INTERVAL)
    scene.wait(INTERVAL)
    assert in_flight(scene) == [1, 2]


def test_the_next_one_that_is_overdue_is_triggered_as_soon_as_one_has_ended() -> None:
    scene = scene_with(2)
    for _ in range(3):
        scene.wait(INTERVAL)
    scene.ack(0, 1)
    scene.ack(1, 1)
    assert in_flight(scene) == [2, 3]


def test_a_minimum_pause_implies_one_at_a_time() -> None:
    scene = scene_with(3, min_pause_ms=10)
    for _ in range(3):
        scene.wait(INTERVAL)
    assert in_flight(scene) == [1]


def test_an_acknowledgement_counts_for_its_own_checkpoint_only() -> None:
    scene = scene_with(2)
    scene.wait(INTERVAL)
    scene.wait(INTERVAL)
    scene.ack(0, 1)
    scene.ack(1, 2)
    assert in_flight(scene) == [1, 2]
    scene.ack(1, 1)
    assert in_flight(scene) == [2]


def test_one_that_completes_subsumes_those_before_it() -> None:
    scene = scene_with(2)
    scene.wait(INTERVAL)
    scene.wait(INTERVAL)
    scene.heard(0)
    scene.ack(0, 2)
    scene.ack(1, 2)
    event = scene.told(events.CheckpointAborted)[-1]
    assert (event.checkpoint_id, event.reason) == (1, FailureReason.CHECKPOINT_SUBSUMED)
    assert scene.heard(0) == [Complete(checkpoint(2))]


def test_a_late_acknowledgement_of_a_subsumed_checkpoint_is_answered_with_the_completion_of_the_later_one() -> None:
    scene = scene_with(2)
    scene.wait(INTERVAL)
    scene.wait(INTERVAL)
    scene.ack(0, 2)
    scene.ack(1, 2)
    scene.heard(0)
    scene.ack(0, 1)
    scene.ack(1, 1)
    assert scene.heard(0) == [Complete(checkpoint(2))]
    assert not scene.told(events.CheckpointCompleted, 1)


def test_a_decline_aborts_its_own_checkpoint_only() -> None:
    scene = scene_with(2)
    scene.wait(INTERVAL)
    scene.wait(INTERVAL)
    scene.heard(1)
    scene.decline(0, 2)
    assert scene.heard(1) == [Abort(checkpoint(2), "subtask 0 declined: no room")]
    assert in_flight(scene) == [1]


def test_each_expires_by_its_own_trigger() -> None:
    scene = scene_with(2)
    scene.wait(INTERVAL)
    scene.wait(INTERVAL)
    scene.wait(TIMEOUT - INTERVAL)
    expired = [(event.checkpoint_id, event.reason) for event in scene.told(events.CheckpointAborted)]
    assert expired == [(1, FailureReason.CHECKPOINT_EXPIRED)]
    assert 2 in in_flight(scene)


def test_a_subsumed_checkpoint_is_no_failure() -> None:
    scene = scene_with(2, tolerable_failures=0)
    scene.wait(INTERVAL)
    scene.wait(INTERVAL)
    scene.ack(0, 2)
    scene.ack(1, 2)
    assert not scene.told(events.AttemptFailed)


def test_nothing_is_triggered_while_a_savepoint_is_in_flight_so_that_it_is_never_subsumed() -> None:
    scene = scene_with(3)
    scene.wait(INTERVAL)
    scene.ask(CheckpointKind.SAVEPOINT)
    for _ in range(3):
        scene.wait(INTERVAL)
    assert in_flight(scene) == [1, 2]


def test_a_checkpoint_that_was_triggered_before_a_savepoint_may_complete_before_it() -> None:
    scene = scene_with(2)
    scene.wait(INTERVAL)
    scene.ask(CheckpointKind.SAVEPOINT)
    for number in (1, 2):
        scene.ack(0, number)
        scene.ack(1, number)
    assert [event.checkpoint_id for event in scene.told(events.CheckpointCompleted)] == [1, 2]


def test_nothing_is_triggered_beside_a_final_checkpoint() -> None:
    scene = scene_with(3)
    scene.stop()
    for _ in range(3):
        scene.wait(INTERVAL)
    assert in_flight(scene) == [1]


def test_a_subtask_that_comes_back_is_told_of_every_checkpoint_in_flight_that_it_has_not_seen() -> None:
    scene = scene_with(3)
    scene.wait(INTERVAL)
    scene.detach(0)
    scene.wait(INTERVAL)
    scene.attach(0, last=1)
    scene.wait(INTERVAL)
    scene.wait(INTERVAL)
    triggered = [message.checkpoint_id for message in scene.heard(0) if isinstance(message, Trigger)]
    assert triggered == [2, 3]


def test_a_subtask_that_forgot_the_later_of_two_that_it_acknowledged_fails_the_attempt() -> None:
    scene = scene_with(2)
    scene.wait(INTERVAL)
    scene.wait(INTERVAL)
    scene.ack(0, 1)
    scene.ack(0, 2)
    scene.attach(0, last=1)
    assert scene.told(events.AttemptFailed)[-1].subtask == 0


def test_a_restarted_coordinator_aborts_all_that_was_in_flight() -> None:
    scene = scene_with(2)
    scene.wait(INTERVAL)
    scene.wait(INTERVAL)
    scene.restart()
    scene.attach(0, last=2)
    scene.attach(1, last=2)
    scene.ack(0, 1)
    aborted = [message.checkpoint_id for message in scene.heard(0) if isinstance(message, Abort)]
    assert sorted(aborted) == [1, 2]
    scene.wait(INTERVAL)
    assert in_flight(scene) == [3]


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"max_concurrent": 0}, "checkpoint_max_concurrent"),
        ({"max_concurrent": 11}, "checkpoint_max_concurrent"),
        ({"retained": 0}, "checkpoints_retained"),
        ({"tolerable_failures": -1}, "checkpoint_tolerable_failures"),
    ],
)
def test_settings_that_cannot_work_are_named(settings: dict[str, int], named: str) -> None:
    with pytest.raises(ConfigurationError, match=named):
        CheckpointSettings(1, 1, **settings)
