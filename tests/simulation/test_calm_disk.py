"""What the calm phase writes in one go is what production's steps leave where none of them fails."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.simulation.disk import CheckpointFolder
from tests.simulation.faults import draw
from tests.simulation.filesystem import File
from tests.simulation.patches import playing
from tests.simulation.process import Lane
from tests.simulation.snapshots import SHARED, STATE_FILE, SimSnapshots, local_disk
from tests.simulation.world import World
from twopc.faults.points import CrashPoint
from twopc.protocol.checkpoints import CheckpointKind
from twopc.protocol.ids import AttemptId, CheckpointId, SubtaskIndex
from twopc.protocol.layout import LEDGER, entry_name, manifest_path, metadata_path
from twopc.protocol.ledger_facts import CheckpointCompleted, CheckpointReserved
from twopc.protocol.ledger_place import NOTHING_BEFORE, LedgerPlace
from twopc.protocol.ledger_state import encode_entry
from twopc.protocol.manifest import Manifest

NUMBER = CheckpointId(7)
POINTS = (
    CrashPoint.COORDINATOR_METADATA_UNSYNCED,
    CrashPoint.COORDINATOR_METADATA_UNNAMED,
    CrashPoint.COORDINATOR_METADATA_NAMED,
    CrashPoint.IN_STORE,
    CrashPoint.BEFORE_SEAL,
)


def world() -> World:
    rates = ("disk_full", "fsync_fails", "crash_at_write", "snapshot_refused", "pause_at_point", "crash_at_point")
    gently: dict[str, Any] = dict.fromkeys(rates, 0.0)
    made = World(1, replace(draw(1), aimed_at=CrashPoint.BEFORE_RESTORE, **gently))
    made.lane = Lane(made.process("coordinator-1", "coordinator"), "loop")
    return made


def entry(number: int) -> str:
    return f"{LEDGER}/{entry_name(number)}"


def stored(number: int) -> bytes:
    """What an entry of the ledger holds."""
    fact = CheckpointReserved(CheckpointId(number), AttemptId(1), CheckpointKind.PERIODIC)
    return encode_entry(fact, LedgerPlace("job", number, NOTHING_BEFORE, "me"))


def written(*, calm: bool) -> tuple[dict[str, bytes], dict[str, int]]:
    """What is there when entries, a checkpoint's metadata and a snapshot are stored, and an entry is deleted."""
    made = world()
    with playing(made):
        folder = CheckpointFolder(made)
        folder.establish()
        folder.create_once(entry(1), stored(1))
        made.calm = calm
        folder.create_once(entry(2), stored(2))
        folder.create_once(metadata_path(NUMBER), b"metadata")
        local = local_disk() / "taken"
        (local / STATE_FILE).write_bytes(b"state")
        SimSnapshots(made, folder).put(NUMBER, SubtaskIndex(0), local, 1)
        folder.delete([entry(1)])
    paths = folder.top.fs.paths
    files = {text: path.node.data for text, path in paths.items() if isinstance(path.node, File)}
    return files, {point.name: made.coverage[f"reached {point.name}"] for point in POINTS}


def test_the_same_files_are_there_and_the_same_places_were_passed() -> None:
    files, reached = written(calm=True)
    assert (files, reached) == written(calm=False)
    manifest = files.pop(manifest_path(NUMBER, SubtaskIndex(0)))
    assert [file.size_bytes for file in Manifest.decode(manifest, "").files] == [len(SHARED), len(b"state")]
    assert set(files.values()) == {stored(2), b"metadata", b"state", SHARED}
    assert set(reached.values()) == {1}


@pytest.mark.parametrize("calm", [True, False])
@pytest.mark.parametrize("name", [entry(1), metadata_path(NUMBER)])
def test_a_name_that_is_taken_is_refused(name: str, calm: bool) -> None:
    made = world()
    with playing(made):
        folder = CheckpointFolder(made)
        folder.establish()
        folder.create_once(name, stored(1))
        made.calm = calm
        with pytest.raises(FileExistsError):
            folder.create_once(name, stored(2))
        assert folder.get(name) == stored(1)


@pytest.mark.parametrize("calm", [True, False])
def test_a_completion_record_that_is_taken_back_at_once_makes_no_checkpoint_needed(calm: bool) -> None:
    made = world()
    fact = CheckpointCompleted(NUMBER, AttemptId(1), CheckpointKind.SAVEPOINT, "", ())
    data = encode_entry(fact, LedgerPlace("job", 1, NOTHING_BEFORE, "me"))
    with playing(made):
        folder = CheckpointFolder(made)
        folder.establish()
        folder.create_once(entry(2), stored(2))
        made.calm = calm
        folder.create_once(entry(1), data)
        assert folder.missing() == (NUMBER,)
        folder.delete([entry(1)])
        assert folder.missing() == ()


def test_a_completion_record_that_was_summed_up_is_not_forgotten() -> None:
    made = world()
    fact = CheckpointCompleted(NUMBER, AttemptId(1), CheckpointKind.SAVEPOINT, "", ())
    with playing(made):
        folder = CheckpointFolder(made)
        folder.establish()
        folder.create_once(entry(1), encode_entry(fact, LedgerPlace("job", 1, NOTHING_BEFORE, "me")))
        folder.create_once(entry(2), stored(2))
        folder.delete([entry(1)])
        assert folder.missing() == (NUMBER,)
