from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.checkpoints.damages import Damage, delete, flip_bit, grow_beyond_memory
from tests.stored_job import JOB, SmallJob, StoredJob, stored_files, stored_path, tree
from twopc.checkpoints.files import examine
from twopc.checkpoints.reference import LocatedCheckpoint, locate
from twopc.drill.checkpoint_copy import copy_restorable
from twopc.errors import CheckpointCorrupted, ConfigurationError
from twopc.protocol.ids import CheckpointId
from twopc.storage.local import LocalStore


@pytest.fixture
def stored(tmp_path: Path) -> StoredJob:
    made = StoredJob(tmp_path / "checkpoints")
    for _ in range(3):
        made.checkpoint()
    return made


@pytest.fixture
def copies(tmp_path: Path) -> LocalStore:
    return LocalStore(tmp_path / "copies")


def chosen(job: StoredJob, number: int) -> LocatedCheckpoint:
    return locate(str(number), LocalStore(job.root))


def test_the_copy_is_the_chosen_checkpoint_whole(stored: StoredJob, copies: LocalStore) -> None:
    metadata, damages = copy_restorable(chosen(stored, 2), copies)
    assert (metadata.checkpoint_id, damages) == (2, [])
    examined = examine(copies, JOB)
    assert (examined.checkpoints, examined.findings) == ([2], [])


def test_files_that_never_change_are_shared_and_not_copied(stored: StoredJob, copies: LocalStore) -> None:
    copy_restorable(chosen(stored, 3), copies)
    for name, path in stored_files(stored.folder, "chk-3/subtask-0").items():
        assert stored_files(copies.root / JOB, "chk-3/subtask-0")[name].samefile(path)


def test_a_healed_checkpoint_brings_what_it_is_restored_from(stored: StoredJob, copies: LocalStore) -> None:
    number = stored.checkpoint(confirmed=False)
    stored.heal(number, 1, CheckpointId(2))
    assert copy_restorable(chosen(stored, number), copies)[1] == []
    assert stored_path(copies.root / JOB, "chk-2/subtask-1/MANIFEST-*").is_file()


def test_the_original_stays_as_it_is(stored: StoredJob, copies: LocalStore) -> None:
    before = tree(stored.root)
    copy_restorable(chosen(stored, 3), copies)
    shutil.rmtree(copies.root)
    assert tree(stored.root) == before


@pytest.mark.parametrize("damage", [flip_bit, delete, grow_beyond_memory], ids=lambda damage: str(damage.__name__))
def test_damaged_state_is_named_by_file(stored: StoredJob, copies: LocalStore, damage: Damage) -> None:
    path = stored_path(stored.folder, "chk-3/subtask-1/000002.sst")
    damage(path)
    _, (finding,) = copy_restorable(chosen(stored, 3), copies)
    assert finding.startswith(f"{path.relative_to(stored.root)} is ")


def test_a_checkpoint_of_which_it_is_unknown_what_it_restores_is_refused(stored: StoredJob, copies: LocalStore) -> None:
    (stored.folder / "chk-3" / "metadata.json").write_bytes(b"{}")
    with pytest.raises(CheckpointCorrupted, match=r"chk-3/metadata\.json"):
        copy_restorable(chosen(stored, 3), copies)


def test_a_checkpoint_that_the_running_job_deletes_meanwhile_is_not_called_damaged(
    stored: StoredJob, copies: LocalStore
) -> None:
    located = chosen(stored, 1)
    stored.forget(CheckpointId(1))
    with pytest.raises(ConfigurationError, match="deleted while it was copied"):
        copy_restorable(located, copies)


def test_small_state_comes_with_the_metadata(tmp_path: Path, copies: LocalStore) -> None:
    small = SmallJob(tmp_path / "checkpoints")
    small.checkpoint()
    assert copy_restorable(chosen(small, 1), copies)[1] == []
    assert examine(copies, JOB).findings == []
