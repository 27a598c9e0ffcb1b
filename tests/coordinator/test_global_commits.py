"""What a global committer has still to commit: kept, offered in order until it is confirmed, awaited by a job's end."""

from __future__ import annotations

import pytest

from coordinator.ledger import Ledger
from tests.coordinator.kit import INTERVAL, JOB, Scene, checkpoint, snapshot
from twopc import events
from twopc.errors import ConfigurationError, Fenced, ProtocolViolation
from twopc.protocol.attempts import CheckpointSettings
from twopc.protocol.ids import CheckpointId, SubtaskIndex
from twopc.protocol.messages import Ack, Finish
from twopc.protocol.requests import SettleLoss

ONE_KEPT = CheckpointSettings(INTERVAL, 10_000, retained=1)


def complete(scene: Scene, number: int, *names: str, commit: bool = True) -> None:
    """Let the one subtask's next checkpoint complete with these transactions, which are committed globally."""
    scene.wait(scene.settings.interval_ms)
    scene.say(0, Ack(checkpoint(number), snapshot(0, *names, checkpoint_id=number, is_global=True)))
    if commit:
        scene.committed(0, number)


def running(*checkpoints: str, settings: CheckpointSettings = ONE_KEPT) -> Scene:
    """A job of one subtask that has completed checkpoints with these transactions; a blank separates names."""
    scene = Scene(settings=settings)
    scene.run(parallelism=1)
    for number, names in enumerate(checkpoints, start=1):
        complete(scene, number, *names.split())
    return scene


def due(scene: Scene) -> tuple[int, list[str]] | None:
    commit = scene.jobs.next_global_commit(JOB, scene.attempt)
    return None if commit is None else (commit.checkpoint_id, [item.name for item in commit.committables])


def kept(scene: Scene) -> list[int]:
    return [each.checkpoint_id for each in Ledger(JOB, scene.storage).state.completed]


def test_the_commit_of_a_subtask_confirms_nothing_that_is_committed_globally() -> None:
    scene = running("a")
    assert scene.told(events.CheckpointConfirmed, 1)
    assert Ledger(JOB, scene.storage).state.completed[0].outstanding == {"a"}


def test_what_is_outstanding_is_offered_oldest_first_until_it_is_confirmed() -> None:
    scene = running("a b", "c")
    assert due(scene) == (1, ["a", "b"])
    assert due(scene) == (1, ["a", "b"]), "asking changes nothing"
    scene.confirm(1, "a", "b")
    assert due(scene) == (2, ["c"])
    scene.confirm(2, "c")
    assert due(scene) is None


def test_a_part_of_a_commit_that_is_confirmed_leaves_the_rest_outstanding() -> None:
    scene = running("a b")
    scene.confirm(1, "a")
    assert due(scene) == (1, ["b"])


def test_a_global_commit_that_is_confirmed_out_of_order_is_refused() -> None:
    scene = running("a", "b")
    with pytest.raises(ProtocolViolation, match="global commit of checkpoint 2 is confirmed before that of an earlier"):
        scene.confirm(2, "b")
    assert due(scene) == (1, ["a"])


@pytest.mark.parametrize("confirmed_first", [True, False])
def test_what_a_later_checkpoint_names_again_is_offered_once(confirmed_first: bool) -> None:
    scene = running("a")
    if confirmed_first:
        scene.confirm(1, "a")
    complete(scene, 2, "a", "b")
    if not confirmed_first:
        scene.confirm(1, "a")
    assert due(scene) == (2, ["b"])


def test_it_is_offered_to_the_next_driver_and_to_another_coordinator() -> None:
    scene = running("a", "b")
    scene.restart()
    scene.run(parallelism=1)
    assert due(scene) == (1, ["a"])


def test_a_driver_that_another_has_taken_over_from_is_not_told_what_is_outstanding() -> None:
    scene = running("a")
    zombie = scene.attempt
    scene.run(parallelism=1)
    with pytest.raises(Fenced):
        scene.jobs.next_global_commit(JOB, zombie)


def test_a_checkpoint_is_kept_as_long_as_its_global_commit_is_outstanding() -> None:
    scene = running("a", "b", "", "", "")
    assert kept(scene) == [1, 2, 4, 5]
    assert due(scene) == (1, ["a"])
    scene.confirm(1, "a")
    complete(scene, 6)
    assert kept(scene) == [2, 5, 6]


def test_nobody_may_dispose_of_a_checkpoint_whose_global_commit_is_outstanding() -> None:
    scene = running("a", "", "")
    with pytest.raises(ConfigurationError, match="checkpoint 1 can't be disposed of: its output is still to be commit"):
        scene.dispose(1)


def test_a_job_ends_only_when_nothing_is_outstanding_globally() -> None:
    scene = running("a")
    scene.stop()
    scene.say(0, Ack(checkpoint(2), snapshot(0, "b", checkpoint_id=2, is_global=True)))
    scene.committed(0, 2)
    scene.confirm(1, "a")
    assert Finish() not in scene.heard(0)
    scene.confirm(2, "b")
    assert Finish() in scene.heard(0)
    assert scene.told(events.JobFinished, 2)


def test_whoever_goes_back_to_an_earlier_checkpoint_still_commits_what_had_completed() -> None:
    scene = running("a", "b")
    scene.start(parallelism=1, restore_from="1")
    assert due(scene) == (1, ["a"])
    scene.confirm(1, "a")
    assert due(scene) == (2, ["b"])


def give_up(scene: Scene, number: int, *names: str, bases: tuple[tuple[SubtaskIndex, CheckpointId], ...] = ()) -> None:
    scene.jobs.request(JOB, SettleLoss(scene.attempt, checkpoint(number), names, bases, "what was lost"))


def test_what_an_older_checkpoint_has_still_to_commit_globally_can_be_given_up_and_the_rest_is_offered() -> None:
    scene = running("a b", "c")
    give_up(scene, 1, "a")
    give_up(scene, 1, "a")
    assert len(scene.told(events.LossSettled)) == 1
    assert due(scene) == (1, ["b"])
    give_up(scene, 1, "b")
    assert due(scene) == (2, ["c"])
    scene.restart()
    scene.start()
    assert due(scene) == (2, ["c"])


def test_nothing_of_an_older_checkpoint_is_written_again_and_nothing_that_is_committed_is_given_up() -> None:
    scene = running("a b", "c", settings=CheckpointSettings(INTERVAL, 10_000, retained=3))
    with pytest.raises(ConfigurationError, match="not the newest"):
        give_up(scene, 1, "a", bases=((SubtaskIndex(0), checkpoint(1)),))
    scene.confirm(1, "a")
    with pytest.raises(ConfigurationError, match="not the newest"):
        give_up(scene, 1, "a")
