"""Where the interval is short, one fact reserves the ids of a second; none is ever used twice."""

from __future__ import annotations

import pytest

from coordinator.storage import MemoryStorage
from coordinator.triggering import RESERVED_AHEAD_MS
from tests.coordinator.kit import Scene, attached_on_a_full_disk, stored
from twopc.protocol.attempts import CheckpointSettings
from twopc.protocol.checkpoints import CheckpointKind
from twopc.protocol.ledger_facts import CheckpointReserved
from twopc.protocol.messages import Trigger

SHORT = CheckpointSettings(200, 10_000)
AHEAD = RESERVED_AHEAD_MS // SHORT.interval_ms


def running(storage: MemoryStorage | None = None, settings: CheckpointSettings = SHORT) -> Scene:
    scene = Scene(storage, settings)
    scene.run(1)
    return scene


def reserved(scene: Scene) -> list[int]:
    return [fact.checkpoint_id for fact in stored(scene.storage, CheckpointReserved)]


def triggered(scene: Scene) -> list[int]:
    return [message.checkpoint_id for message in scene.heard(0) if isinstance(message, Trigger)]


def take(scene: Scene, count: int) -> list[int]:
    """Let so many checkpoints complete; return their ids."""
    ids = []
    for _ in range(count):
        scene.wait(scene.settings.interval_ms)
        ids += triggered(scene)
        scene.ack(0, ids[-1], f"t{ids[-1]}")
        scene.committed(0, ids[-1])
    return ids


def test_one_fact_reserves_the_checkpoints_of_a_second() -> None:
    scene = running()
    assert take(scene, AHEAD - 1) == list(range(1, AHEAD))
    assert reserved(scene) == [AHEAD]
    assert take(scene, 2) == [AHEAD, AHEAD + 1]
    assert reserved(scene) == [AHEAD, 2 * AHEAD]


@pytest.mark.parametrize("interval_ms", [RESERVED_AHEAD_MS, 10 * RESERVED_AHEAD_MS])
def test_where_the_interval_is_a_second_or_more_each_id_has_a_fact_of_its_own(interval_ms: int) -> None:
    scene = running(settings=CheckpointSettings(interval_ms, 10_000))
    take(scene, 2)
    assert reserved(scene) == [1, 2]


def test_a_coordinator_that_was_restarted_uses_none_of_the_ids_that_may_have_been_sent() -> None:
    scene = running()
    take(scene, 2)
    scene.wait(SHORT.interval_ms)
    scene.restart()
    scene.attach(0, last=3)
    assert take(scene, 1) == [AHEAD + 1]


def test_an_attempt_uses_none_of_the_ids_of_the_attempt_before() -> None:
    scene = running()
    take(scene, 2)
    scene.run(1, restart=True)
    assert take(scene, 1) == [AHEAD + 1]


def test_what_a_person_asks_for_is_numbered_above_all_that_is_reserved() -> None:
    scene = running()
    take(scene, 1)
    scene.ask(CheckpointKind.SAVEPOINT)
    assert take(scene, 1) == [2]
    assert triggered(scene) == [AHEAD + 1]
    scene.ack(0, AHEAD + 1)
    assert take(scene, 1) == [AHEAD + 2]


def test_the_final_checkpoint_is_numbered_above_all_that_is_reserved() -> None:
    scene = running()
    take(scene, 1)
    scene.stop()
    assert take(scene, 1) == [2]
    assert triggered(scene) == [AHEAD + 1]


def test_ids_whose_storing_failed_are_never_used() -> None:
    scene, storage = attached_on_a_full_disk(SHORT)
    assert triggered(scene) == []
    assert "aborted 1" in scene.told()
    storage.is_full = lambda name, data: False
    scene.wait(SHORT.interval_ms)
    assert triggered(scene) == [AHEAD + 1]


def test_what_retention_no_longer_keeps_goes_with_the_next_fact() -> None:
    scene = running()
    take(scene, AHEAD + 1)
    kept = [each.checkpoint_id for each in scene.jobs._jobs[scene.job].core.state.completed]
    assert kept == [AHEAD - 2, AHEAD - 1, AHEAD, AHEAD + 1]
