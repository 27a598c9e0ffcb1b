"""A subtask that stores its snapshots where the coordinator does not look completes no checkpoint."""

from __future__ import annotations

from hashlib import sha256

import pytest

from tests.coordinator.kit import INTERVAL, Scene
from twopc import events
from twopc.protocol.facts import StateHandle, SubtaskSnapshot
from twopc.protocol.ids import CheckpointId, SubtaskIndex
from twopc.protocol.manifest import Manifest
from twopc.protocol.messages import Abort, Ack, Complete
from twopc.storage.memory import MemoryStore

MANIFEST = Manifest.of([], 0).encode()


def acknowledged(number: int = 1, path: str = "chk-1/subtask-1", *stored: tuple[str, bytes]) -> Scene:
    """A checkpoint that both subtasks have acknowledged, the second with a snapshot that is kept in files."""
    storage = MemoryStore()
    scene = Scene(storage)
    scene.run()
    scene.wait(INTERVAL)
    scene.heard(0)
    for name, data in stored:
        storage.data[name] = data
    scene.ack(0, number)
    state = StateHandle(path, sha256(MANIFEST).hexdigest(), 10, 1)
    scene.say(1, Ack(CheckpointId(number), SubtaskSnapshot.of(SubtaskIndex(1), (), state, ())))
    return scene


def test_a_checkpoint_completes_when_what_was_acknowledged_is_there() -> None:
    scene = acknowledged(1, "chk-1/subtask-1", ("chk-1/subtask-1.json", MANIFEST))
    assert Complete(CheckpointId(1)) in scene.heard(0)


@pytest.mark.parametrize(
    ("path", "stored"),
    [
        ("chk-1/subtask-1", []),
        ("chk-1/subtask-1", [("chk-1/subtask-1.json", b"of another disk")]),
        ("chk-1/subtask-0", [("chk-1/subtask-0.json", MANIFEST)]),
        ("../other/chk-1/subtask-1", [("../other/chk-1/subtask-1.json", MANIFEST)]),
    ],
    ids=["nothing is there", "another is there", "of another subtask", "elsewhere"],
)
def test_a_snapshot_that_the_coordinator_does_not_see_declines_the_checkpoint_and_names_the_host(
    path: str, stored: list[tuple[str, bytes]]
) -> None:
    scene = acknowledged(1, path, *stored)
    (abort,) = scene.heard(0)
    assert isinstance(abort, Abort)
    said = scene.told(events.CheckpointDeclined)[-1]
    assert (said.checkpoint_id, said.subtask) == (1, 1)
    for told in (abort.reason, said.message, scene.told(events.CheckpointAborted)[-1].message):
        assert "subtask 1 on here stored its snapshot where the coordinator does not see it" in told
        assert "--checkpoint-dir" in told
    assert not scene.told(events.CheckpointCompleted, 1)


def test_the_next_checkpoint_completes_when_the_folder_is_shared_again() -> None:
    scene = acknowledged()
    for subtask in range(2):
        scene.heard(subtask)
    scene.complete(2)
    assert scene.told(events.CheckpointCompleted, 2)
