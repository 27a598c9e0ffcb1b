"""A disk that stays full is tried again once a second, and never makes the coordinator spin."""

from __future__ import annotations

import pytest

from coordinator.commits import RETRY_STORE_MS
from tests.coordinator.kit import FaultyStorage, Scene
from twopc.protocol.messages import Finish


class CountingDisk(FaultyStorage):
    """Is full for one kind of entry, and counts how often that was tried."""

    def __init__(self, kind: bytes) -> None:
        super().__init__()
        self.full = True
        self.tries = 0
        self._kind = kind
        self.is_full = self._refuses

    def _refuses(self, name: str, data: bytes) -> bool:
        concerned = self._kind in data and b'"kind":"summary"' not in data
        self.tries += concerned
        return concerned and self.full


def run_to_the_end(disk: CountingDisk) -> Scene:
    """A job whose final checkpoint is completed and committed, as far as the disk lets it be stored."""
    scene = Scene(disk)
    scene.run()
    scene.stop()
    for subtask in (0, 1):
        scene.ack(subtask, 1, f"t{subtask}")
    for subtask in (0, 1):
        scene.committed(subtask, 1)
    return scene


KINDS = pytest.mark.parametrize("kind", [b"committables-confirmed", b"attempt-ended"])


@KINDS
def test_what_can_not_be_stored_is_tried_again_once_a_second(kind: bytes) -> None:
    disk = CountingDisk(kind)
    scene = run_to_the_end(disk)
    before = disk.tries
    for _ in range(5):
        scene.wait(RETRY_STORE_MS)
    assert disk.tries == before + 5


@KINDS
def test_the_deadline_is_never_in_the_past_after_a_tick(kind: bytes) -> None:
    scene = run_to_the_end(CountingDisk(kind))
    for _ in range(20):
        scene.wait(RETRY_STORE_MS // 4)
        deadline = scene.jobs.deadline()
        assert deadline is not None
        assert deadline > scene.clock.now().monotonic_ms


@KINDS
def test_ticks_before_that_try_nothing(kind: bytes) -> None:
    disk = CountingDisk(kind)
    scene = run_to_the_end(disk)
    scene.wait(RETRY_STORE_MS)
    before = disk.tries
    for _ in range(3):
        scene.jobs.tick()
    scene.wait(RETRY_STORE_MS - 1)
    assert disk.tries == before


@KINDS
def test_the_job_finishes_when_the_disk_has_room_again(kind: bytes) -> None:
    disk = CountingDisk(kind)
    scene = run_to_the_end(disk)
    disk.full = False
    scene.wait(RETRY_STORE_MS)
    assert Finish() in scene.heard(0)
