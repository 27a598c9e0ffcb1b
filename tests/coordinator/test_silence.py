"""A subtask whose stream is gone, and who does not come back, fails its attempt; one that says little does not."""

from __future__ import annotations

import pytest

from coordinator.events import Detached
from coordinator.silence import RETURN_MS, START_MS
from tests.coordinator.kit import JOB, TIMEOUT, Scene
from twopc import events
from twopc.protocol.attempts import CheckpointSettings
from twopc.protocol.messages import Progress

HEARTBEAT = 30_000
SELDOM = CheckpointSettings(1_000 * HEARTBEAT, TIMEOUT)
QUIET = Progress(0, 0, None, None, ())


@pytest.fixture
def scene() -> Scene:
    """An attempt whose two subtasks have just attached."""
    scene = Scene(settings=SELDOM, heartbeat_timeout_ms=HEARTBEAT)
    scene.run()
    return scene


def failures(scene: Scene) -> list[str]:
    return [event.message for event in scene.told(events.AttemptFailed)]


def test_a_subtask_whose_stream_stays_broken_fails_the_attempt_which_names_its_host(scene: Scene) -> None:
    scene.detach(1)
    scene.wait(HEARTBEAT - 1)
    assert failures(scene) == []
    scene.wait(1)
    (failure,) = scene.told(events.AttemptFailed)
    assert failure.message.startswith("subtask 1 on here has been silent for 30 s")
    assert (failure.subtask, failure.restartable) == (1, True)


def test_the_silence_begins_with_the_last_message_not_with_the_end_of_the_stream(scene: Scene) -> None:
    scene.wait(HEARTBEAT)
    scene.say(1, QUIET)
    scene.wait(HEARTBEAT - RETURN_MS)
    scene.detach(1)
    scene.wait(RETURN_MS - 1)
    assert failures(scene) == []
    scene.wait(1)
    assert len(failures(scene)) == 1


def test_an_open_stream_that_carries_nothing_is_no_silence(scene: Scene) -> None:
    scene.wait(100 * HEARTBEAT)
    assert failures(scene) == []


def test_a_subtask_that_is_back_in_time_is_not_silent(scene: Scene) -> None:
    scene.detach(1)
    scene.wait(HEARTBEAT - 1)
    scene.attach(1)
    scene.wait(100 * HEARTBEAT)
    assert failures(scene) == []


def test_a_subtask_has_a_moment_to_come_back_however_long_ago_it_was_heard(scene: Scene) -> None:
    """The coordinator itself may have stood still meanwhile, and all streams have ended."""
    scene.wait(100 * HEARTBEAT)
    for subtask in range(2):
        scene.detach(subtask)
    scene.wait(RETURN_MS - 1)
    for subtask in range(2):
        scene.attach(subtask)
    scene.wait(1)
    assert failures(scene) == []


def test_subtasks_that_have_not_attached_yet_are_waited_for_while_none_has() -> None:
    """There may be no room for them; they start all at once."""
    scene = Scene(settings=SELDOM, heartbeat_timeout_ms=HEARTBEAT)
    scene.start()
    scene.wait(100 * START_MS)
    assert failures(scene) == []


def test_a_subtask_that_does_not_attach_a_minute_after_the_first_has_fails_the_attempt_which_names_it() -> None:
    scene = Scene(settings=SELDOM, heartbeat_timeout_ms=HEARTBEAT)
    scene.start(3)
    scene.attach(0)
    scene.wait(START_MS - 1)
    scene.attach(2)
    assert failures(scene) == []
    scene.wait(1)
    (failure,) = scene.told(events.AttemptFailed)
    assert failure.message.startswith(
        "subtask 1 of 3 did not reach the coordinator in time, as it should have when the others did"
    )
    assert (failure.subtask, failure.restartable) == (1, True)


def test_a_heartbeat_timeout_of_more_than_a_minute_counts_for_the_first_attaching_too() -> None:
    scene = Scene(settings=SELDOM, heartbeat_timeout_ms=2 * START_MS)
    scene.start()
    scene.attach(0)
    scene.wait(2 * START_MS - 1)
    assert failures(scene) == []
    scene.wait(1)
    assert len(failures(scene)) == 1


def test_an_attempt_whose_subtasks_have_all_come_late_goes_on() -> None:
    scene = Scene(settings=SELDOM, heartbeat_timeout_ms=HEARTBEAT)
    scene.start()
    scene.attach(1)
    scene.wait(START_MS - 1)
    scene.attach(0)
    scene.wait(100 * START_MS)
    assert failures(scene) == []


def restarted(*, heartbeat: int = HEARTBEAT) -> Scene:
    """A coordinator that finds an attempt whose subtasks have run, and is asked for it."""
    scene = Scene(settings=SELDOM, heartbeat_timeout_ms=heartbeat)
    scene.run()
    scene.restart()
    scene.jobs.status(JOB)
    scene.wait(0)
    return scene


def test_who_does_not_come_back_to_a_coordinator_that_was_restarted_is_waited_for_as_for_a_silent_one() -> None:
    scene = restarted()
    scene.attach(0)
    scene.wait(HEARTBEAT - 1)
    assert failures(scene) == []
    scene.wait(1)
    (failure,) = failures(scene)
    assert failure.startswith("subtask 1 of 2 did not reach the coordinator in time")
    assert "when the coordinator was started again" in failure


def test_all_have_a_moment_to_come_back_however_short_the_time_out() -> None:
    scene = restarted(heartbeat=1)
    scene.attach(0)
    scene.wait(RETURN_MS - 1)
    assert failures(scene) == []
    scene.wait(1)
    assert len(failures(scene)) == 1


def test_a_coordinator_to_which_nobody_comes_back_waits_for_a_minute() -> None:
    scene = restarted()
    scene.wait(START_MS - 1)
    assert failures(scene) == []
    scene.wait(1)
    (failure,) = failures(scene)
    assert failure.startswith("subtask 0, 1 of 2 did not reach the coordinator in time")


def test_those_who_come_back_to_a_coordinator_have_no_more_than_others() -> None:
    scene = restarted()
    scene.attach(0)
    scene.attach(1)
    scene.wait(100 * START_MS)
    assert failures(scene) == []


def test_the_coordinator_wakes_by_itself_when_somebody_has_not_come() -> None:
    scene = Scene(settings=SELDOM, heartbeat_timeout_ms=HEARTBEAT)
    scene.start()
    scene.attach(0)
    assert scene.jobs.deadline() == scene.clock.now().monotonic_ms + START_MS


def test_a_stream_that_was_replaced_is_not_missed(scene: Scene) -> None:
    replaced = scene.session_of[1]
    scene.attach(1)
    scene.jobs.take(JOB, (Detached(replaced),))
    scene.wait(HEARTBEAT)
    assert failures(scene) == []


def test_the_coordinator_wakes_by_itself_when_a_silence_is_too_long(scene: Scene) -> None:
    scene.detach(1)
    assert scene.jobs.deadline() == scene.clock.now().monotonic_ms + HEARTBEAT
