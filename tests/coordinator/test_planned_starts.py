"""Where a job that has nothing to restore begins to read is kept until it has."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.coordinator.kit import JOB, Scene
from twopc.errors import Fenced
from twopc.protocol.facts import SplitPosition
from twopc.protocol.ids import AttemptId
from twopc.protocol.planned_starts import StartsPlanned
from twopc.protocol.requests import PlanStarts

Ask = Callable[[Scene], object]


def plan(scene: Scene, start: int = 70, *, attempt: int | None = None) -> StartsPlanned:
    starts = (SplitPosition("in[0]", 0, [start, "id"]),)
    planned = StartsPlanned(scene.attempt if attempt is None else AttemptId(attempt), "Latest()", starts)
    scene.jobs.request(JOB, PlanStarts(planned))
    return planned


def test_the_next_attempt_is_given_the_starts_of_the_first() -> None:
    scene = Scene()
    scene.run()
    planned = plan(scene)
    assert scene.start().planned == planned


def test_a_coordinator_that_restarts_still_has_them() -> None:
    scene = Scene()
    scene.run()
    planned = plan(scene)
    for _ in range(3):
        scene.restart()
        assert scene.start().planned == planned


def test_the_same_starts_are_stored_once() -> None:
    scene = Scene()
    scene.run()
    planned = plan(scene)
    scene.start()
    plan(scene)
    assert scene.start().planned == planned


def test_who_wants_nothing_restored_is_not_given_them() -> None:
    scene = Scene()
    scene.run()
    plan(scene)
    assert scene.start(restore_from="none").planned is None


def test_they_are_forgotten_when_a_checkpoint_completes() -> None:
    scene = Scene()
    scene.run()
    plan(scene)
    scene.complete(1)
    assert scene.start().planned is None


def test_an_attempt_that_is_over_plans_nothing() -> None:
    scene = Scene()
    scene.run()
    scene.start()
    with pytest.raises(Fenced):
        plan(scene, attempt=1)


@pytest.mark.parametrize("request_of", [lambda it: it.stop(), lambda it: it.stop(drain=True), lambda it: plan(it)])
def test_nothing_is_stored_for_a_job_that_was_never_started_and_it_can_start_afterwards(request_of: Ask) -> None:
    scene = Scene()
    with pytest.raises(Fenced, match="none was started"):
        request_of(scene)
    scene.end()
    assert scene.start().attempt == 1
