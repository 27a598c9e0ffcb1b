from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.checkpoints.damages import Damage, delete, flip_bit, grow_beyond_memory
from tests.stored_job import JOB, SmallJob, StoredJob, stored_files, stored_path, tree
from twopc.checkpoints.catalog import find_checkpoint, read_job, restorable
from twopc.drill.copying import copy_ledger, copy_state
from twopc.errors import CheckpointCorrupted, ConfigurationError, Unavailable
from twopc.protocol.facts import CheckpointMetadata
from twopc.protocol.ids import CheckpointId


@pytest.fixture
def stored(tmp_path: Path) -> StoredJob:
    made = StoredJob(tmp_path / "checkpoints")
    for _ in range(3):
        made.checkpoint()
    return made


def metadata_of(root: Path, number: int) -> CheckpointMetadata:
    found = read_job(root, JOB)
    return restorable(found, find_checkpoint(found, CheckpointId(number)))


def test_the_copy_holds_the_ledger_and_the_state_of_the_chosen_checkpoint(stored: StoredJob, tmp_path: Path) -> None:
    copies = tmp_path / "copies"
    copy_ledger(stored.root, JOB, copies)
    assert copy_state(stored.root, metadata_of(stored.root, 2), CheckpointId(2), copies) == []
    copied, original = tree(copies / JOB), tree(stored.folder)
    needed = {
        str(path.relative_to(stored.folder))
        for subtask in (0, 1)
        for path in stored_files(stored.folder, f"chk-2/subtask-{subtask}").values()
    }
    left_out = {name for name in original if name.startswith(("chk-1/subtask", "chk-3/subtask"))}
    left_out |= {name for name in original if name.startswith("files/") and name not in needed}
    assert copied == {name: digest for name, digest in original.items() if name not in left_out}


def test_a_healed_checkpoint_brings_what_it_is_restored_from(stored: StoredJob, tmp_path: Path) -> None:
    number = stored.checkpoint(confirmed=False)
    stored.heal(number, 1, CheckpointId(2))
    copies = tmp_path / "copies"
    copy_ledger(stored.root, JOB, copies)
    assert copy_state(stored.root, metadata_of(stored.root, number), number, copies) == []
    assert stored_path(copies / JOB, "chk-2/subtask-1/MANIFEST-*").is_file()


def test_the_original_stays_as_it_is(stored: StoredJob, tmp_path: Path) -> None:
    before = tree(stored.root)
    copy_ledger(stored.root, JOB, tmp_path / "copies")
    copy_state(stored.root, metadata_of(stored.root, 3), CheckpointId(3), tmp_path / "copies")
    assert tree(stored.root) == before


@pytest.mark.parametrize("damage", [flip_bit, delete, grow_beyond_memory], ids=lambda damage: str(damage.__name__))
def test_damaged_state_is_named_by_file(stored: StoredJob, tmp_path: Path, damage: Damage) -> None:
    path = stored_path(stored.folder, "chk-3/subtask-1/000002.sst")
    damage(path)
    copy_ledger(stored.root, JOB, tmp_path / "copies")
    (finding,) = copy_state(stored.root, metadata_of(stored.root, 3), CheckpointId(3), tmp_path / "copies")
    assert finding.startswith(f"{path.relative_to(stored.root)} is ")


def test_a_ledger_that_is_damaged_is_refused(stored: StoredJob, tmp_path: Path) -> None:
    sorted((stored.folder / "ledger").glob("*.json"))[0].write_bytes(b"{}")
    with pytest.raises(CheckpointCorrupted):
        copy_ledger(stored.root, JOB, tmp_path / "copies")


def test_a_job_that_is_not_there_is_a_mistake_of_who_asked(stored: StoredJob, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="no job 'other'"):
        copy_ledger(stored.root, "other", tmp_path / "copies")


def test_a_checkpoint_that_the_running_job_deletes_meanwhile_is_not_called_damaged(
    stored: StoredJob, tmp_path: Path
) -> None:
    metadata = metadata_of(stored.root, 3)
    copy_ledger(stored.root, JOB, tmp_path / "copies")
    newer = StoredJob(tmp_path / "other" / "checkpoints")
    newer.checkpoint()
    shutil.rmtree(stored.root)
    newer.root.rename(stored.root)
    with pytest.raises(Unavailable, match="deleted while it was copied"):
        copy_state(stored.root, metadata, CheckpointId(3), tmp_path / "copies")


def test_small_state_comes_with_the_ledger(tmp_path: Path) -> None:
    small = SmallJob(tmp_path / "checkpoints")
    small.checkpoint()
    copy_ledger(small.root, JOB, tmp_path / "copies")
    assert copy_state(small.root, metadata_of(small.root, 1), CheckpointId(1), tmp_path / "copies") == []
    assert tree(tmp_path / "copies" / JOB) == tree(small.folder)
