"""The first checkpoints of an attempt that goes on from one come before the interval is over."""

from __future__ import annotations

import pytest

from coordinator.schedule import SOON_MS
from tests.coordinator.kit import INTERVAL, TIMEOUT, Scene, checkpoint
from twopc import events
from twopc.protocol.attempts import CheckpointSettings
from twopc.protocol.messages import Trigger


def restarted(settings: CheckpointSettings) -> Scene:
    """Return a job whose second attempt, of one subtask, has just gone on from checkpoint 1."""
    scene = Scene(settings=settings)
    scene.run(parallelism=1)
    scene.complete(1, parallelism=1)
    scene.run(parallelism=1, restart=True)
    return scene


def triggered_after(scene: Scene, milliseconds: int, number: int) -> None:
    """Hold the scene to this checkpoint after this time, and not before; let it complete at once."""
    scene.wait(milliseconds - 1)
    assert scene.heard(0) == []
    scene.wait(1)
    assert scene.heard(0) == [Trigger(checkpoint(number))]
    scene.ack(0, number)
    scene.committed(0, number)
    scene.heard(0)


@pytest.mark.parametrize("interval", [INTERVAL, 600_000])
def test_two_come_soon_and_then_one_an_interval(interval: int) -> None:
    scene = restarted(CheckpointSettings(interval, TIMEOUT))
    for number, pause in enumerate((*SOON_MS, interval, interval), start=2):
        triggered_after(scene, pause, number)


def test_an_interval_that_is_shorter_stays() -> None:
    scene = restarted(CheckpointSettings(100, TIMEOUT))
    for number in (2, 3, 4):
        triggered_after(scene, 100, number)


def test_the_minimum_pause_is_kept() -> None:
    scene = restarted(CheckpointSettings(INTERVAL, TIMEOUT, min_pause_ms=700))
    triggered_after(scene, SOON_MS[0], 2)
    triggered_after(scene, 700, 3)


def test_one_that_fails_is_followed_after_a_whole_interval() -> None:
    scene = restarted(CheckpointSettings(INTERVAL, TIMEOUT, tolerable_failures=1))
    scene.wait(SOON_MS[0])
    scene.decline(0, 2)
    scene.heard(0)
    triggered_after(scene, INTERVAL, 3)


def test_an_attempt_that_begins_from_nothing_waits_for_the_interval() -> None:
    scene = Scene()
    scene.run()
    scene.wait(INTERVAL - 1)
    assert not scene.told(events.CheckpointTriggered)
