"""Somebody wants another number of subtasks: the driver is told, however late it listens, and who asked is answered."""

from __future__ import annotations

from typing import Any

import pytest

from coordinator.rescaling import rescaled
from tests.coordinator.kit import JOB, Scene, checkpoint
from tests.job_events import event
from twopc import events
from twopc.errors import ConfigurationError, Fenced, Unavailable
from twopc.protocol.ids import AttemptId, CheckpointId, SubtaskIndex
from twopc.protocol.requests import RefuseRescale, Rescale


@pytest.fixture
def scene() -> Scene:
    """A running job with one completed checkpoint."""
    made = Scene()
    made.run()
    made.complete(1)
    return made


def wish_in_status(scene: Scene) -> list[events.RescaleRequested]:
    return [each for each in scene.jobs.status(JOB) if isinstance(each, events.RescaleRequested)]


def test_the_driver_is_told_how_many_and_behind_which_checkpoint(scene: Scene) -> None:
    scene.jobs.request(JOB, Rescale(3, "one"))
    [told] = scene.told(events.RescaleRequested)
    assert (told.attempt, told.parallelism, told.after, told.request_id) == (1, 3, checkpoint(1), "one")


def test_a_driver_that_listens_late_is_told_the_latest_wish(scene: Scene) -> None:
    scene.jobs.request(JOB, Rescale(3, "one"))
    scene.jobs.request(JOB, Rescale(4, "two"))
    assert [(each.parallelism, each.request_id) for each in wish_in_status(scene)] == [(4, "two")]
    scene.start(4)
    assert wish_in_status(scene) == [], "it is the next attempt's no more"


def test_a_refusal_is_told_and_ends_the_wish(scene: Scene) -> None:
    scene.jobs.request(JOB, Rescale(9, "one"))
    scene.jobs.request(JOB, RefuseRescale(scene.attempt, "one", "no room"))
    assert [(each.request_id, each.message) for each in scene.told(events.RescaleRefused)] == [("one", "no room")]
    assert wish_in_status(scene) == []


def test_a_refusal_of_a_wish_that_was_replaced_counts_for_nothing(scene: Scene) -> None:
    scene.jobs.request(JOB, Rescale(9, "one"))
    scene.jobs.request(JOB, Rescale(3, "two"))
    scene.jobs.request(JOB, RefuseRescale(scene.attempt, "one", "no room"))
    assert scene.told(events.RescaleRefused) == []
    assert [each.request_id for each in wish_in_status(scene)] == ["two"]


def test_nobody_but_the_driver_of_the_attempt_refuses(scene: Scene) -> None:
    scene.jobs.request(JOB, Rescale(9, "one"))
    with pytest.raises(Fenced):
        scene.jobs.request(JOB, RefuseRescale(AttemptId(scene.attempt + 1), "one", "no room"))


def test_a_job_that_is_stopping_is_not_rescaled(scene: Scene) -> None:
    scene.stop()
    with pytest.raises(ConfigurationError, match="it can't be rescaled: job 'flights' is stopping"):
        scene.jobs.request(JOB, Rescale(3, "one"))


REQUESTED = event(
    events.RescaleRequested, attempt=AttemptId(1), parallelism=2, request_id="mine", after=CheckpointId(4)
)
STARTED = event(events.AttemptStarted, attempt=AttemptId(2), restored=CheckpointId(5))


def attached(subtask: int, attempt: int = 2) -> Any:
    return event(events.SubtaskAttached, attempt=AttemptId(attempt), subtask=SubtaskIndex(subtask))


def failed(attempt: int, *, restartable: bool) -> Any:
    return event(events.AttemptFailed, attempt=AttemptId(attempt), message="poison", restartable=restartable)


def test_who_asked_is_answered_when_all_subtasks_of_the_next_attempt_run() -> None:
    told = [REQUESTED, attached(0, 1), STARTED, attached(0), attached(0), attached(1), attached(2)]
    assert rescaled(AttemptId(1), 2, "mine", told) == (2, 5)


def test_an_attempt_in_between_that_starts_again_is_waited_for() -> None:
    again = event(events.AttemptStarted, attempt=AttemptId(3), restored=CheckpointId(5))
    told = [STARTED, attached(0), failed(2, restartable=True), again, attached(1, 3), attached(0, 3)]
    assert rescaled(AttemptId(1), 2, "mine", told) == (3, 5)


@pytest.mark.parametrize(
    ("told", "kind", "said"),
    [
        ([event(events.RescaleRefused, message="no room", request_id="mine")], ConfigurationError, "no room"),
        ([failed(1, restartable=True)], Unavailable, "failed first: poison; ask again"),
        ([STARTED, failed(2, restartable=False)], Unavailable, "the next attempt failed: poison"),
        ([event(events.JobFinished)], Unavailable, "has finished"),
        ([event(events.RescaleRequested, parallelism=7, request_id="other")], Unavailable, "wants 7 subtasks since"),
        ([STARTED, attached(0)], Unavailable, "2 subtasks did not run in time"),
    ],
)
def test_who_asked_is_told_why_it_does_not_happen(told: list[Any], kind: type[Exception], said: str) -> None:
    with pytest.raises(kind, match=said):
        rescaled(AttemptId(1), 2, "mine", told)


def test_a_refusal_of_somebody_else_s_wish_is_no_answer() -> None:
    other = event(events.RescaleRefused, message="no room", request_id="other")
    assert rescaled(AttemptId(1), 1, "mine", [other, STARTED, attached(0)]) == (2, 5)
