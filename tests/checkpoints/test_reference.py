"""What a person may call a checkpoint, and what comes of a name that is none."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.stored_job import JOB, StoredJob
from twopc.checkpoints.reference import locate
from twopc.errors import CheckpointCorrupted, ConfigurationError
from twopc.protocol.checkpoints import CheckpointKind, checked_label
from twopc.storage.local import LocalStore


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Three checkpoints; the first two are savepoints with one label."""
    job = StoredJob(tmp_path / "checkpoints")
    job.checkpoint(CheckpointKind.SAVEPOINT, "before-1.2")
    job.checkpoint(CheckpointKind.SAVEPOINT, "before-1.2")
    job.checkpoint()
    return job.root


@pytest.mark.parametrize(("name", "number"), [("latest", 3), ("2", 2), ("chk-1", 1), ("before-1.2", 2)])
def test_an_id_a_label_and_the_latest_name_a_checkpoint(root: Path, name: str, number: int) -> None:
    assert locate(name, LocalStore(root)).checkpoint_id == number
    assert locate(name, LocalStore(root), JOB).checkpoint_id == number


@pytest.mark.parametrize(("path", "number"), [(f"{JOB}/chk-1", 1), (JOB, 3), (".", 3)])
def test_a_path_brings_its_own_checkpoint_folder(root: Path, tmp_path: Path, path: str, number: int) -> None:
    located = locate(str(root / path), LocalStore(tmp_path / "another"), JOB)
    assert (located.checkpoint_id, located.root.identity) == (number, str(root))
    assert located.store.identity == str(root / JOB)


def test_a_name_in_this_folder_is_a_path_unless_it_is_a_label(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert locate("checkpoints", LocalStore(tmp_path / "another")).checkpoint_id == 3
    (tmp_path / "before-1.2").mkdir()
    assert locate("before-1.2", LocalStore(root)).checkpoint_id == 2


def test_a_checkpoint_that_is_not_there_is_never_replaced_by_another(root: Path) -> None:
    with pytest.raises(ConfigurationError, match="completed: 1, 2, 3"):
        locate("9", LocalStore(root))
    with pytest.raises(ConfigurationError, match=r"labels: before-1\.2"):
        locate("before-1.3", LocalStore(root))


@pytest.mark.parametrize("label", ["latest", "none", "7", "chk-7", "a b", "../x", ""])
def test_a_label_that_would_not_be_found_again_is_refused(label: str) -> None:
    with pytest.raises(ConfigurationError, match=r"label .* can't be used"):
        checked_label(label)


def test_a_label_may_begin_as_an_id_does() -> None:
    assert [checked_label(label) for label in ("7a", "chk-", "chk-7a", "1.2")] == ["7a", "chk-", "chk-7a", "1.2"]


def test_a_path_to_nothing_says_what_may_be_given(root: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"there is no checkpoint .*give an id, a label"):
        locate(str(root / JOB / "chk-9"), LocalStore(root))


def test_a_checkpoint_whose_ledger_is_not_beside_it_is_refused(root: Path, tmp_path: Path) -> None:
    (root / JOB / "chk-1").rename(tmp_path / "chk-1")
    with pytest.raises(ConfigurationError, match="twopc checkpoints copy"):
        locate(str(tmp_path / "chk-1"), LocalStore(root))


def test_a_checkpoint_of_another_job_is_refused(root: Path) -> None:
    with pytest.raises(ConfigurationError, match=f"belongs to job '{JOB}', not to 'other'"):
        locate(str(root / JOB / "chk-1"), LocalStore(root), "other")


def test_restoring_takes_healed_subtasks_from_where_they_write_again(tmp_path: Path) -> None:
    job = StoredJob(tmp_path / "checkpoints")
    base, newest = job.checkpoint(), job.checkpoint(confirmed=False)
    job.heal(newest, 1, base)
    restored = locate("latest", LocalStore(job.root)).restorable()
    assert [snapshot.state.path for snapshot in restored.snapshots] == ["chk-2/subtask-0", "chk-1/subtask-1"]


def test_nothing_is_restored_of_a_checkpoint_whose_metadata_is_damaged(root: Path) -> None:
    (root / JOB / "chk-3" / "metadata.json").write_bytes(b"{}")
    with pytest.raises(CheckpointCorrupted, match=r"chk-3/metadata\.json"):
        locate("latest", LocalStore(root)).restorable()


@pytest.mark.parametrize("name", ["nofile.tar", "some/nofile.tar"])
def test_an_archive_that_is_not_there_is_said_to_be_no_file(root: Path, name: str) -> None:
    with pytest.raises(ConfigurationError, match=f"there is no file '{name}'"):
        locate(name, LocalStore(root), JOB)
