"""A job's coordinator on a disk that fails, and on one that loses power, at every single step of all that it stores.

The steps are those of one checkpoint and of one new attempt: reservation, metadata, completion record, confirmations,
the summary, and the deletion of old entries and checkpoints.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from coordinator.ledger import Ledger
from tests.coordinator.kit import INTERVAL, JOB, Scene
from tests.leak_audit import Place, look
from tests.storage.disks import (
    FAULTS,
    FailingDisk,
    Fault,
    PowerCut,
    SteppedDisk,
    StoppingDisk,
    count_steps,
    under_files,
)
from twopc.checkpoints.catalog import read_job
from twopc.errors import Unavailable
from twopc.protocol.ledger_state import LedgerState
from twopc.protocol.messages import Abort, Complete, Trigger
from twopc.storage.local import LocalStore

pytestmark = pytest.mark.simulation

COMPLETED = 4
TRIES = 10
each_fault = pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
Folder = Callable[[], Path]


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    """Makes checkpoint folders that have nothing to do with each other."""
    made: list[Path] = []

    def make() -> Path:
        made.append(tmp_path / f"checkpoints-{len(made)}")
        return made[-1]

    return make


def running(root: Path) -> Scene:
    """A job with two subtasks and some completed checkpoints; the next one makes the oldest forgotten."""
    with under_files(SteppedDisk()):
        scene = Scene(LocalStore(root / JOB))
        scene.run()
        for number in range(1, COMPLETED + 1):
            scene.complete(number)
            (root / JOB / f"chk-{number}" / "subtask-0").mkdir(mode=0o700)
            (root / JOB / f"chk-{number}" / "subtask-0" / "data").write_bytes(b"state")
            (root / JOB / f"chk-{number}" / "subtask-0" / "data").chmod(0o600)
    return scene


def next_checkpoint(scene: Scene) -> bool:
    """Play the subtasks through whatever comes of the next checkpoint; say whether it was completed."""
    scene.wait(INTERVAL)
    said = [message for subtask in (0, 1) for message in scene.heard(subtask)]
    ids = {message.checkpoint_id for message in said if isinstance(message, Trigger)}
    for number in ids:
        for subtask in (0, 1):
            scene.ack(subtask, number, f"t{number}-{subtask}")
    heard = [scene.heard(subtask) for subtask in (0, 1)]
    completed = [message for messages in heard for message in messages if isinstance(message, Complete)]
    for message in completed:
        for subtask in (0, 1):
            scene.committed(subtask, message.checkpoint_id)
    return bool(completed)


def completes_again(scene: Scene) -> bool:
    """Whether another checkpoint completes, in a new attempt if this one has failed, as the driver would start it."""
    for _ in range(TRIES):
        if state_of(scene).ended is not None:
            scene.run()
        if next_checkpoint(scene):
            return next_checkpoint(scene)
    return False


def state_of(scene: Scene) -> LedgerState:
    return scene.jobs._jobs[JOB].core.state


def left_behind(root: Path) -> list[str]:
    return [str(finding) for finding in look(Place(JOB, checkpoint_dir=root, temporary=root))]


@each_fault
def test_wherever_the_disk_fails_the_job_goes_on_and_completes_the_next_checkpoint(
    folder: Folder, fault: Fault
) -> None:
    counted = running(folder())
    for at in range(1, count_steps(lambda: next_checkpoint(counted)) + 1):
        root = folder()
        scene, disk = running(root), FailingDisk(fault, at)
        with under_files(disk):
            completed = next_checkpoint(scene)
        assert completed or disk.failed, at
        aborted = [message for _, message in scene.outlet.sent if isinstance(message, Abort)]
        triggered = {message.checkpoint_id for _, message in scene.outlet.sent if isinstance(message, Trigger)}
        assert completed or aborted or triggered == set(range(1, COMPLETED + 1)), f"step {at}: nobody was told"
        with under_files(SteppedDisk()):
            assert completes_again(scene), f"after step {at} no checkpoint completes"
        assert Ledger(JOB, LocalStore(root / JOB)).state == state_of(scene), at
        found = read_job(LocalStore(root), JOB)
        assert [entry.damage for entry in found.completed if entry.damage] == []
        assert left_behind(root) == [], at


@each_fault
def test_wherever_the_disk_fails_an_attempt_is_started_or_refused_and_can_be_started_then(
    folder: Folder, fault: Fault
) -> None:
    counted = running(folder())
    for at in range(1, count_steps(counted.start) + 1):
        root = folder()
        scene = running(root)
        with under_files(FailingDisk(fault, at)):
            try:
                started = scene.start().attempt
            except Unavailable:
                started = None
        assert state_of(scene).current == (started or 1), at
        with under_files(SteppedDisk()):
            scene.start()
        assert Ledger(JOB, LocalStore(root / JOB)).state == state_of(scene), at
        assert state_of(scene).current > (started or 1), at
        assert left_behind(root) == [], at


@pytest.mark.parametrize("lost", ["nothing", "everything", "names", "contents", "one", "all but one"])
def test_wherever_power_is_lost_everything_that_was_said_to_anybody_is_still_known(
    folder: Folder, tmp_path: Path, lost: str
) -> None:
    def play(scene: Scene) -> None:
        next_checkpoint(scene)
        scene.start()

    counted = running(folder())
    for at in range(1, count_steps(lambda: play(counted)) + 2):
        root = folder()
        scene, trash = running(root), tmp_path / f"trash-{at}"
        trash.mkdir()
        disk = StoppingDisk(trash, at)
        with under_files(disk), suppress(PowerCut):
            play(scene)
        before = state_of(scene)
        disk.lose(disk.chooser(lost, at % max(disk.count_unsynced(), 1)))
        after = Ledger(JOB, LocalStore(root / JOB)).state
        triggered = [message.checkpoint_id for _, message in scene.outlet.sent if isinstance(message, Trigger)]
        assert before.newest is not None
        assert after.newest is not None
        assert after.newest.checkpoint_id >= before.newest.checkpoint_id, f"at {at}, {lost}"
        assert after.current >= before.current, f"at {at}, {lost}"
        assert after.last_reserved >= max(triggered), f"at {at}, {lost}"
        assert [entry.damage for entry in read_job(LocalStore(root), JOB).completed if entry.damage] == [], (
            f"at {at}, {lost}"
        )
        with under_files(SteppedDisk()):
            scene.restart()
            scene.run()
            assert completes_again(scene), f"at {at}, {lost}"
        assert left_behind(root) == [], f"at {at}, {lost}"


def test_the_steps_that_fail_here_are_of_every_kind(folder: Folder) -> None:
    scene, disk = running(folder()), SteppedDisk()
    with under_files(disk):
        next_checkpoint(scene)
        scene.start()
    assert set(disk.steps) >= {"create", "write", "sync", "link", "sync_folder", "delete", "delete_folder"}
