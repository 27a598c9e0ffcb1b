"""What a person may let go of, and what a restore may still need."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from coordinator.ledger import Ledger
from coordinator.retention import needed_because
from tests.coordinator.kit import JOB, SETTINGS, Scene, checkpoint
from tests.coordinator.test_retention import completed, written_again_from
from twopc.errors import ConfigurationError
from twopc.protocol.checkpoints import CheckpointKind
from twopc.storage.local import LocalStore

SAVEPOINT = CheckpointKind.SAVEPOINT


def with_savepoint(scene: Scene) -> Scene:
    """A running job: 1 is a savepoint, 2 and 3 are not."""
    scene.run()
    scene.ask(SAVEPOINT, "old")
    for subtask in (0, 1):
        scene.ack(subtask, 1, f"t1-{subtask}")
        scene.heard(subtask)
        scene.committed(subtask, 1)
    for number in (2, 3):
        scene.complete(number)
    return scene


def test_a_savepoint_is_gone_with_its_folder_and_stays_gone(tmp_path: Path) -> None:
    scene = with_savepoint(Scene(LocalStore(tmp_path / JOB)))
    scene.dispose(1)
    assert not (tmp_path / JOB / "chk-1").exists()
    assert (tmp_path / JOB / "chk-2").exists()
    assert [each.checkpoint_id for each in Ledger(JOB, scene.storage).state.completed] == [2, 3]
    scene.complete(4)


def test_a_job_that_does_not_run_can_let_go_too() -> None:
    scene = with_savepoint(Scene())
    scene.end()
    scene.restart()
    scene.dispose(1)
    assert [each.checkpoint_id for each in scene.jobs.describe(JOB).kept] == [2, 3]


def test_the_newest_is_needed_to_go_on() -> None:
    scene = with_savepoint(Scene())
    with pytest.raises(ConfigurationError, match="it is the newest"):
        scene.dispose(3)


def test_what_is_not_there_is_named_with_what_is() -> None:
    scene = with_savepoint(Scene())
    with pytest.raises(ConfigurationError, match="there are: 1, 2, 3"):
        scene.dispose(9)


def test_what_the_running_attempt_was_restored_from_is_needed_until_it_has_its_own() -> None:
    scene = with_savepoint(Scene(settings=replace(SETTINGS, retained=1)))
    scene.start(restore_from="1")
    with pytest.raises(ConfigurationError, match="was restored from it"):
        scene.dispose(1)
    scene.attach(0)
    scene.attach(1)
    scene.complete(4)
    scene.dispose(1)


def test_what_lost_output_is_written_again_from_is_needed() -> None:
    first, second = completed(1, SAVEPOINT, True), completed(2, SAVEPOINT, True)
    third = completed(3, CheckpointKind.PERIODIC, True)
    second = replace(second, losses=(written_again_from(second, 1),))
    assert "checkpoint 2 can't be restored without it" in needed_because((first, second, third), checkpoint(1))
    assert needed_because((first, second, third), checkpoint(2)) == ""


def test_what_open_output_may_have_to_be_written_again_from_is_needed() -> None:
    history = [completed(number, SAVEPOINT, number < 3) for number in (1, 2, 3, 4)]
    assert needed_because(history, checkpoint(1)) == ""
    for number in (2, 3):
        assert "not committed yet" in needed_because(history, checkpoint(number))
