"""Which completed checkpoints are kept."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from coordinator.ledger import Ledger
from coordinator.retention import to_forget
from tests.coordinator.kit import INTERVAL, JOB, SETTINGS, Scene, checkpoint
from twopc.protocol.checkpoints import CheckpointKind
from twopc.protocol.completed_checkpoint import CompletedCheckpoint
from twopc.protocol.ids import AttemptId, CheckpointId, SubtaskIndex
from twopc.protocol.ledger_facts import CheckpointCompleted, LossSettled

KINDS = st.sampled_from([CheckpointKind.PERIODIC, CheckpointKind.MANUAL, CheckpointKind.SAVEPOINT])


def completed(number: int, kind: CheckpointKind, confirmed: bool) -> CompletedCheckpoint:
    record = CheckpointCompleted(CheckpointId(number), AttemptId(1), kind, "0" * 64, ((f"t{number}",),))
    return CompletedCheckpoint(record, frozenset([f"t{number}"] if confirmed else []))


def written_again_from(each: CompletedCheckpoint, base: int) -> LossSettled:
    bases = ((SubtaskIndex(0), CheckpointId(base)),)
    return LossSettled(each.checkpoint_id, AttemptId(1), (f"t{each.checkpoint_id}",), bases, "", 0)


histories = st.lists(st.tuples(KINDS, st.booleans()), max_size=12).map(
    lambda each: [completed(number, *what) for number, what in enumerate(each, start=1)]
)


def kept(history: list[CompletedCheckpoint], retained: int) -> list[CompletedCheckpoint]:
    forgotten = to_forget(history, retained)
    return [each for each in history if each.checkpoint_id not in forgotten]


@given(histories, st.integers(1, 4))
def test_savepoints_and_the_newest_others_are_kept(history: list[CompletedCheckpoint], retained: int) -> None:
    found = kept(history, retained)
    others = [each for each in history if each.record.kind is not CheckpointKind.SAVEPOINT]
    assert all(each in found for each in history if each.record.kind is CheckpointKind.SAVEPOINT)
    assert all(each in found for each in others[-retained:])


@given(histories, st.integers(1, 4))
def test_the_newest_confirmed_one_and_every_one_after_it_are_kept(
    history: list[CompletedCheckpoint], retained: int
) -> None:
    """From one of these a subtask replays whose transaction was lost, whichever it was."""
    confirmed = [index for index, each in enumerate(history) if not each.outstanding]
    needed = history[confirmed[-1] :] if confirmed else history
    assert all(each in kept(history, retained) for each in needed)


@given(histories, st.integers(1, 4))
def test_nothing_else_is_kept(history: list[CompletedCheckpoint], retained: int) -> None:
    if any(not each.outstanding for each in history[-1:]):
        ordinary = [each for each in kept(history, retained) if each.record.kind is not CheckpointKind.SAVEPOINT]
        assert len(ordinary) <= retained


@given(histories, st.integers(1, 4), st.data())
def test_whatever_a_kept_checkpoint_is_healed_from_is_kept_too(
    history: list[CompletedCheckpoint], retained: int, data: st.DataObject
) -> None:
    healed = [
        replace(each, losses=(written_again_from(each, data.draw(st.integers(1, each.checkpoint_id - 1))),))
        if each.checkpoint_id > 1 and data.draw(st.booleans())
        else each
        for each in history
    ]
    found = kept(healed, retained)
    ids = {each.checkpoint_id for each in found}
    assert all(base in ids for each in found for base in each.bases.values())


@given(histories, st.integers(1, 4), st.integers(1, 12))
def test_what_the_attempt_was_restored_from_is_kept(
    history: list[CompletedCheckpoint], retained: int, restored: int
) -> None:
    assert CheckpointId(restored) not in to_forget(history, retained, CheckpointId(restored))


def test_an_older_checkpoint_that_was_restored_is_there_again_for_the_next_attempt() -> None:
    scene = Scene(settings=replace(SETTINGS, retained=3))
    scene.run()
    for number in (1, 2, 3):
        scene.complete(number)
    scene.settings = replace(SETTINGS, retained=1)
    for _ in range(2):
        scene.start(restore_from="1")
        scene.attach(0)
        scene.attach(1)
        scene.wait(INTERVAL)
    assert [each.checkpoint_id for each in scene.jobs.describe(JOB).kept] == [1, 3]
    for subtask in (0, 1):
        scene.ack(subtask, 5, f"t5-{subtask}")
        scene.heard(subtask)
        scene.committed(subtask, 5)
    scene.complete(6)
    assert 1 not in [each.checkpoint_id for each in scene.jobs.describe(JOB).kept]


def test_as_many_are_kept_as_the_setting_says() -> None:
    scene = Scene(settings=replace(SETTINGS, retained=1))
    scene.run()
    for number in (1, 2, 3):
        scene.complete(number)
    assert [each.checkpoint_id for each in scene.jobs.describe(JOB).kept] == [2, 3]


def test_a_savepoint_outlives_any_number_of_checkpoints_and_restarts_and_can_be_restored() -> None:
    scene = Scene()
    scene.run()
    scene.ask(CheckpointKind.SAVEPOINT, "before-upgrade")
    for subtask in (0, 1):
        scene.ack(subtask, 1, f"t1-{subtask}")
        scene.heard(subtask)
        scene.committed(subtask, 1)
    for number in range(2, 9):
        scene.complete(number)
    scene.restart()
    started = scene.start(restore_from="1")
    assert started.restored is not None
    assert (started.restored.kind, started.restored.label) == (CheckpointKind.SAVEPOINT, "before-upgrade")
    record = Ledger(JOB, scene.storage).state.find(checkpoint(1))
    assert record is not None
    assert (record.record.kind, record.record.label) == (CheckpointKind.SAVEPOINT, "before-upgrade")
