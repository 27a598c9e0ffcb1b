"""Where checkpoints are frequent, the next is triggered with the completion of the one before, to be taken later."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.coordinator.kit import Scene, attached_on_a_full_disk, checkpoint
from twopc.crashpoints import CrashPoint
from twopc.protocol.attempts import FREQUENT_MS, CheckpointSettings
from twopc.protocol.checkpoints import CheckpointKind
from twopc.protocol.messages import Abort, Complete, ToSubtask, Trigger

SHORT = CheckpointSettings(100, 1_000)


def running(settings: CheckpointSettings = SHORT, parallelism: int = 1) -> Scene:
    scene = Scene(settings=settings)
    scene.run(parallelism)
    return scene


def completed(scene: Scene, number: int, *, after_ms: int = 0) -> list[ToSubtask]:
    """Let the only subtask acknowledge, so long after it was due; return what it hears then."""
    scene.wait(scene.settings.interval_ms)
    scene.heard(0)
    scene.clock.advance(after_ms)
    scene.ack(0, number, f"t{number}")
    return scene.heard(0)


def test_the_first_one_is_triggered_as_soon_as_all_are_attached() -> None:
    assert running().heard(0) == [Trigger(checkpoint(1), after_ms=100)]


def test_the_next_one_goes_with_the_completion_and_is_due_an_interval_after_the_one_before() -> None:
    scene = running()
    assert completed(scene, 1, after_ms=30) == [Complete(checkpoint(1)), Trigger(checkpoint(2), after_ms=70)]
    scene.clock.advance(70)
    scene.ack(0, 2)
    assert scene.heard(0) == [Complete(checkpoint(2)), Trigger(checkpoint(3), after_ms=100)]


def test_one_that_is_due_when_the_one_before_completes_is_to_be_taken_at_once() -> None:
    assert completed(running(), 1, after_ms=130)[1] == Trigger(checkpoint(2))


def test_the_minimum_pause_counts() -> None:
    scene = running(replace(SHORT, min_pause_ms=90))
    assert completed(scene, 1, after_ms=30)[1] == Trigger(checkpoint(2), after_ms=90)


@pytest.mark.parametrize("settings", [replace(SHORT, interval_ms=FREQUENT_MS + 1), replace(SHORT, max_concurrent=2)])
def test_where_they_are_rarer_or_overlap_each_is_triggered_when_it_is_due(settings: CheckpointSettings) -> None:
    scene = running(settings)
    assert scene.heard(0) == []
    scene.wait(settings.interval_ms)
    assert scene.heard(0) == [Trigger(checkpoint(1))]


def test_a_subtask_that_attaches_again_hears_how_much_time_is_left() -> None:
    scene = running()
    scene.detach(0)
    scene.wait(60)
    scene.attach(0)
    assert scene.heard(0) == [Trigger(checkpoint(1), after_ms=40)]


def test_after_a_failure_the_next_one_waits_for_its_time() -> None:
    scene = running()
    scene.wait(100)
    scene.heard(0)
    scene.decline(0, 1)
    assert [type(message) for message in scene.heard(0)] == [Abort]
    scene.wait(99)
    assert scene.heard(0) == []
    scene.wait(1)
    assert scene.heard(0) == [Trigger(checkpoint(2))]


def test_a_full_disk_makes_nobody_spin() -> None:
    scene, _ = attached_on_a_full_disk(SHORT)
    assert scene.jobs.deadline() == scene.clock.now().monotonic_ms + SHORT.interval_ms


def test_it_may_take_its_time_from_when_it_is_due() -> None:
    scene = running()
    scene.wait(SHORT.interval_ms + SHORT.timeout_ms - 1)
    assert "aborted 1" not in scene.told()
    scene.wait(1)
    assert "aborted 1" in scene.told()


def test_its_times_count_from_when_it_was_due() -> None:
    scene = running()
    due = scene.clock.now().unix_ms + 100
    completed(scene, 1, after_ms=30)
    metadata = scene.jobs._jobs[scene.job].ledger.metadata(checkpoint(1))
    assert (metadata.triggered_ms, metadata.times[0].acknowledged_ms) == (due, 30)
    assert scene.last_event("completed").duration_ms == 30


def test_what_a_person_asks_for_comes_after_it() -> None:
    scene = running()
    completed(scene, 1)
    scene.ask(CheckpointKind.SAVEPOINT)
    assert scene.heard(0) == []
    assert completed(scene, 2)[1] == Trigger(checkpoint(11))


def test_those_who_are_told_of_the_completion_last_are_known_though_more_is_said_to_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    places: list[CrashPoint] = []
    monkeypatch.setattr("coordinator.crash_places.reached", lambda point, **_: places.append(point))
    scene = running(parallelism=2)
    scene.wait(SHORT.interval_ms)
    for subtask in (0, 1):
        scene.ack(subtask, 1)
    assert places[-4:] == [
        CrashPoint.COORDINATOR_IN_NOTIFY,
        CrashPoint.COORDINATOR_AFTER_NOTIFY,
        CrashPoint.COORDINATOR_IN_TRIGGERS,
        CrashPoint.COORDINATOR_AFTER_TRIGGERS,
    ]


def test_the_end_of_the_input_is_after_it_too() -> None:
    scene = running()
    scene.end_of_input(0)
    scene.heard(0)
    assert completed(scene, 1)[1] == Trigger(checkpoint(11), final=True)
