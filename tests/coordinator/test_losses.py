"""What the ledger keeps about lost output, and what the next attempt is given."""

from __future__ import annotations

import pytest

from coordinator.retention import to_forget
from tests.coordinator.kit import JOB, Scene, checkpoint
from twopc import events
from twopc.errors import CheckpointCorrupted, ConfigurationError, Fenced
from twopc.protocol.codec import from_json, to_json
from twopc.protocol.ids import CheckpointId, SubtaskIndex
from twopc.protocol.layout import metadata_path
from twopc.protocol.ledger_state import LedgerState
from twopc.protocol.requests import SettleLoss
from twopc.storage.memory import MemoryStore

BASES = ((SubtaskIndex(0), checkpoint(1)),)


def decide(
    scene: Scene, *names: str, number: int = 2, bases: tuple[tuple[SubtaskIndex, CheckpointId], ...] = BASES
) -> None:
    scene.jobs.request(JOB, SettleLoss(scene.attempt, checkpoint(number), names, bases, "what was lost"))


def after_two_checkpoints() -> Scene:
    """Checkpoint 1 is committed everywhere, checkpoint 2 nowhere; the next attempt has begun."""
    scene = Scene()
    scene.run()
    scene.complete(1)
    scene.complete(2, commit=False)
    scene.start()
    return scene


def test_a_driver_is_given_what_a_loss_could_be_written_again_from() -> None:
    started = after_two_checkpoints().start()
    assert [each.checkpoint_id for each in started.earlier] == [1]


def test_nothing_is_offered_when_nothing_is_outstanding() -> None:
    scene = after_two_checkpoints()
    scene.confirm(2, "t2-0", "t2-1")
    assert scene.start().earlier == ()


def test_every_later_attempt_restores_a_healed_subtask_from_the_same_checkpoint() -> None:
    scene = after_two_checkpoints()
    scene.confirm(2, "t2-1")
    decide(scene, "t2-0")
    scene.restart()
    started = scene.start()
    assert started.lost == {"t2-0"}
    assert started.latest is not None
    assert started.restored is not None
    assert [each.state.path for each in started.latest.snapshots] == ["chk-2/subtask-0", "chk-2/subtask-1"]
    assert [each.state.path for each in started.restored.snapshots] == ["chk-1/subtask-0", "chk-2/subtask-1"]


def test_a_decision_is_told_and_stored_once() -> None:
    scene = after_two_checkpoints()
    decide(scene, "t2-0")
    decide(scene, "t2-0")
    assert len(scene.told(events.LossSettled, 2)) == 1
    assert scene.told(events.LossSettled)[-1].message == "what was lost"


def test_a_loss_that_was_accepted_restores_nothing_from_before() -> None:
    scene = after_two_checkpoints()
    decide(scene, "t2-0", "t2-1", bases=())
    started = scene.start()
    assert started.restored == started.latest


def test_a_loss_that_was_to_be_written_again_can_be_accepted_later() -> None:
    scene = after_two_checkpoints()
    scene.confirm(2, "t2-1")
    decide(scene, "t2-0")
    scene.start()
    decide(scene, "t2-0", bases=())
    decide(scene, "t2-0", bases=())
    assert len(scene.told(events.LossSettled, 2)) == 2
    scene.restart()
    started = scene.start()
    assert started.restored == started.latest
    assert started.lost == {"t2-0"}
    state = _state(scene)
    assert from_json(LedgerState, to_json(state)) == state


def test_accepting_the_loss_of_one_subtask_leaves_the_others_to_write_theirs_again() -> None:
    scene = after_two_checkpoints()
    decide(scene, "t2-0", "t2-1", bases=(*BASES, (SubtaskIndex(1), checkpoint(1))))
    decide(scene, "t2-0", bases=())
    started = scene.start()
    assert started.restored is not None
    assert [each.state.path for each in started.restored.snapshots] == ["chk-2/subtask-0", "chk-1/subtask-1"]


def test_what_a_loss_may_not_name() -> None:
    scene = after_two_checkpoints()
    scene.confirm(2, "t2-1")
    with pytest.raises(ConfigurationError, match="not the newest"):
        decide(scene, "t1-0", number=1)
    with pytest.raises(ConfigurationError, match="not outstanding"):
        decide(scene, "t2-1")
    with pytest.raises(ConfigurationError, match="that is kept"):
        decide(scene, "t2-0", bases=((SubtaskIndex(0), checkpoint(99)),))


def test_a_driver_of_an_older_attempt_decides_nothing() -> None:
    scene = after_two_checkpoints()
    older = scene.attempt
    scene.start()
    scene.attempt = older
    with pytest.raises(Fenced):
        decide(scene, "t2-0")


def test_the_checkpoint_that_a_healed_subtask_needs_is_kept_until_a_later_one_is_confirmed() -> None:
    scene = after_two_checkpoints()
    scene.confirm(2, "t2-1")
    decide(scene, "t2-0")
    for subtask in range(2):
        scene.attach(subtask)
    scene.complete(3, commit=False)
    completed = _state(scene).completed
    assert to_forget(completed, 1) == ()
    scene.committed(0, 3)
    scene.committed(1, 3)
    assert to_forget(_state(scene).completed, 1) == (1, 2)


def test_a_summary_keeps_the_decision() -> None:
    scene = after_two_checkpoints()
    decide(scene, "t2-0")
    state = _state(scene)
    assert from_json(LedgerState, to_json(state)) == state
    assert state.completed[-1].bases == dict(BASES)


def _state(scene: Scene) -> LedgerState:
    return scene.jobs._jobs[JOB].core.state


def test_a_newest_checkpoint_that_cant_be_read_is_named_with_the_way_back_and_what_comes_of_it() -> None:
    scene = after_two_checkpoints()
    storage = scene.storage
    assert isinstance(storage, MemoryStore)
    storage.data = {name: data for name, data in storage.data.items() if name != metadata_path(checkpoint(2))}
    with pytest.raises(CheckpointCorrupted, match=r"(?s)chk-2/metadata\.json.*--from 1 restores .* twice"):
        scene.start()
