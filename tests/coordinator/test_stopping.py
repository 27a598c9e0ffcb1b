"""A job is stopped where it is, with a savepoint, or after it has read what there was."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.coordinator.kit import INTERVAL, JOB, SETTINGS, Scene, checkpoint
from twopc import events
from twopc.errors import ConfigurationError
from twopc.protocol.checkpoints import CheckpointKind
from twopc.protocol.messages import Complete, Drain, Finish, Trigger


@pytest.fixture
def scene() -> Scene:
    """A running job with one completed checkpoint."""
    made = Scene(settings=replace(SETTINGS, retained=1))
    made.run()
    made.complete(1)
    return made


def finish(scene: Scene, number: int) -> None:
    """Play the final checkpoint of this number to the end of the job."""
    for subtask in (0, 1):
        assert scene.heard(subtask) == [Trigger(checkpoint(number), final=True)]
        scene.ack(subtask, number, f"t{number}-{subtask}")
    for subtask in (0, 1):
        assert scene.heard(subtask) == [Complete(checkpoint(number))]
        scene.committed(subtask, number)
    assert scene.heard(0) == [Finish()]


def test_the_last_checkpoint_may_be_a_savepoint_with_a_label(scene: Scene) -> None:
    scene.stop(savepoint=True, label="before-1.2")
    finish(scene, 2)
    kept = scene.jobs.describe(JOB).kept[-1]
    assert (kept.kind, kept.label) == (CheckpointKind.FINAL_SAVEPOINT, "before-1.2")
    assert scene.told(events.CheckpointCompleted)[-1].final


def test_a_last_checkpoint_that_is_a_savepoint_outlives_any_number_of_others(scene: Scene) -> None:
    scene.stop(savepoint=True)
    finish(scene, 2)
    scene.run()
    for number in (3, 4, 5):
        scene.complete(number)
    assert [each.checkpoint_id for each in scene.jobs.describe(JOB).kept] == [2, 4, 5]


def test_an_ordinary_last_checkpoint_does_not(scene: Scene) -> None:
    scene.stop()
    finish(scene, 2)
    scene.run()
    for number in (3, 4, 5):
        scene.complete(number)
    assert [each.checkpoint_id for each in scene.jobs.describe(JOB).kept] == [4, 5]


def test_a_drain_is_told_at_once_and_the_last_checkpoint_waits_for_all_subtasks(scene: Scene) -> None:
    scene.stop(drain=True)
    assert [scene.heard(subtask) for subtask in (0, 1)] == [[Drain()], [Drain()]]
    scene.end_of_input(0)
    scene.complete(2)
    scene.end_of_input(1)
    finish(scene, 3)


def test_a_drain_may_end_with_a_savepoint(scene: Scene) -> None:
    scene.stop(savepoint=True, label="drained", drain=True)
    for subtask in (0, 1):
        scene.heard(subtask)
        scene.end_of_input(subtask)
    finish(scene, 2)
    assert scene.jobs.describe(JOB).kept[-1].label == "drained"


def test_a_drain_outlives_its_coordinator_and_is_told_again_to_whoever_attaches(scene: Scene) -> None:
    scene.stop(drain=True)
    scene.restart()
    for subtask in (0, 1):
        scene.attach(subtask, last=1)
        assert Drain() in scene.heard(subtask)
    scene.wait(INTERVAL)
    assert not any(message.final for message in scene.heard(0) if isinstance(message, Trigger))


@pytest.mark.parametrize("drain", [False, True])
def test_a_new_run_of_the_job_knows_nothing_of_a_stop_of_the_one_before(scene: Scene, drain: bool) -> None:
    scene.stop(drain=drain)
    scene.end()
    scene.run()
    assert [scene.heard(subtask) for subtask in (0, 1)] == [[], []]


def test_a_drain_goes_on_after_a_restart_and_ends_as_was_asked(scene: Scene) -> None:
    scene.stop(savepoint=True, label="drained", drain=True)
    scene.end("a broker went away")
    scene.restart()
    scene.run(restart=True)
    assert [scene.heard(subtask) for subtask in (0, 1)] == [[Drain()], [Drain()]]
    scene.complete(2)
    for subtask in (0, 1):
        scene.end_of_input(subtask)
    finish(scene, 3)
    assert scene.jobs.describe(JOB).kept[-1].label == "drained"


def test_a_stop_goes_on_after_a_restart(scene: Scene) -> None:
    scene.stop(savepoint=True, label="v1")
    scene.end("a broker went away")
    scene.run(restart=True)
    finish(scene, 3)
    assert scene.jobs.describe(JOB).kept[-1].label == "v1"


def test_after_its_final_checkpoint_a_job_that_is_restarted_only_ends(scene: Scene) -> None:
    scene.stop(savepoint=True, label="v1")
    for subtask in (0, 1):
        scene.ack(subtask, 2, f"t2-{subtask}")
    scene.end("a broker went away")
    scene.run(restart=True)
    finish(scene, 3)
    kept = scene.jobs.describe(JOB).kept
    assert [(each.kind, each.label) for each in kept[-2:]] == [
        (CheckpointKind.FINAL_SAVEPOINT, "v1"),
        (CheckpointKind.FINAL, ""),
    ]


def test_after_the_final_checkpoint_of_a_drain_a_job_that_is_restarted_reads_to_the_end_again(scene: Scene) -> None:
    """What it is restored from may be further back, if output was lost."""
    scene.stop(drain=True)
    for subtask in (0, 1):
        scene.end_of_input(subtask)
    for subtask in (0, 1):
        scene.ack(subtask, 2, f"t2-{subtask}")
    scene.end("a transaction was lost")
    scene.run(restart=True)
    assert [scene.heard(subtask) for subtask in (0, 1)] == [[Drain()], [Drain()]]
    for subtask in (0, 1):
        scene.end_of_input(subtask)
    finish(scene, 3)


def test_a_plain_stop_ends_a_drain(scene: Scene) -> None:
    scene.stop(drain=True, savepoint=True, label="v1")
    scene.heard(0), scene.heard(1)
    scene.stop()
    finish(scene, 2)
    assert scene.jobs.describe(JOB).kept[-1].label == "v1"


def test_whoever_asks_for_less_or_the_same_joins_a_stop_that_is_on_its_way(scene: Scene) -> None:
    scene.stop(savepoint=True, label="v1")
    for less in ({}, {"savepoint": True}, {"savepoint": True, "label": "v1"}):
        scene.stop(savepoint="savepoint" in less, label=str(less.get("label", "")))
    finish(scene, 2)


@pytest.mark.parametrize("more", [{"savepoint": True}, {"drain": True}])
def test_whoever_asks_for_more_is_refused(scene: Scene, more: dict[str, bool]) -> None:
    scene.stop()
    with pytest.raises(ConfigurationError, match="is stopping already"):
        scene.stop(savepoint="savepoint" in more, drain="drain" in more)


def test_another_label_is_refused(scene: Scene) -> None:
    scene.stop(savepoint=True, label="v1")
    with pytest.raises(ConfigurationError, match="is stopping already with a savepoint"):
        scene.stop(savepoint=True, label="v2")
