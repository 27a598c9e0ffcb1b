"""A subtask's folder for local state is its attempt's alone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from twopc.protocol.ids import AttemptId, SubtaskIndex
from twopc.storage.local import LocalStore
from twopc.storage.work_folder import (
    make_work_folder,
    remove_of_attempt,
    remove_of_more_subtasks,
    remove_work_folder,
    work_folders_of,
)


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "tmp"
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    return folder


def make(checkpoint_dir: Path, attempt: int, subtask: int = 0, job: str = "orders") -> Path:
    return make_work_folder(LocalStore(checkpoint_dir), job, SubtaskIndex(subtask), AttemptId(attempt))


def test_what_earlier_attempts_left_is_removed_and_what_a_later_one_has_is_not(tmp_path: Path) -> None:
    earlier, later = make(tmp_path, 1), make(tmp_path, 3)
    make(tmp_path, 2)
    assert (earlier.exists(), later.exists()) == (False, True)


def test_an_attempt_begins_with_an_empty_folder_that_only_its_user_may_read(tmp_path: Path) -> None:
    (make(tmp_path, 1) / "state").touch()
    folder = make(tmp_path, 1)
    assert list(folder.iterdir()) == []
    assert {each.stat().st_mode & 0o777 for each in (folder, folder.parent, folder.parent.parent)} == {0o700}


def test_nothing_stays_when_the_last_subtask_is_gone(tmp_path: Path, temporary: Path) -> None:
    first, second = make(tmp_path, 1, 0), make(tmp_path, 1, 1)
    remove_work_folder(first)
    assert second.exists()
    remove_work_folder(second)
    assert list(temporary.iterdir()) == []


def test_nothing_stays_of_an_attempt_whose_subtasks_could_not_clean_up(tmp_path: Path, temporary: Path) -> None:
    (make(tmp_path, 2, 0) / "state").touch()
    make(tmp_path, 2, 1).rmdir()
    remove_of_attempt(LocalStore(tmp_path), "orders", AttemptId(2))
    assert list(temporary.iterdir()) == []


def test_other_attempts_and_other_jobs_keep_theirs_when_one_has_ended(tmp_path: Path) -> None:
    kept = [make(tmp_path, 3), make(tmp_path, 2, job="flights")]
    make(tmp_path, 2, 1)
    remove_of_attempt(LocalStore(tmp_path), "orders", AttemptId(2))
    assert all(each.exists() for each in kept)


def test_a_folder_is_made_while_an_earlier_attempt_takes_away_those_that_are_empty(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    of_earlier = make(tmp_path, 1)
    met: list[Path] = []

    def meets(parent: Path) -> Iterator[Path]:
        if not met:
            met.append(parent)
            remove_work_folder(of_earlier)
        return iterdir(parent)

    iterdir = Path.iterdir
    monkeypatch.setattr(Path, "iterdir", meets)
    assert make(tmp_path, 2).exists()
    assert met


def test_what_subtasks_left_that_an_attempt_of_a_smaller_parallelism_has_not_is_removed(
    tmp_path: Path, temporary: Path
) -> None:
    (make(tmp_path, 1, 3) / "state").touch()
    remove_of_more_subtasks(LocalStore(tmp_path), "orders", 2, AttemptId(2))
    assert list(temporary.rglob("subtask-3")) == []


def test_a_late_attempt_of_a_smaller_parallelism_leaves_a_later_one_and_its_own_subtasks_alone(tmp_path: Path) -> None:
    later, own = make(tmp_path, 3, 3), make(tmp_path, 1, 1)
    remove_of_more_subtasks(LocalStore(tmp_path), "orders", 2, AttemptId(2))
    assert later.exists()
    assert own.exists()


def test_those_of_a_checkpoint_folder_are_found_whatever_the_job(tmp_path: Path) -> None:
    ours = {make(tmp_path / "a", 1, job=job).parent.parent for job in ("orders", "flights")}
    make(tmp_path / "b", 1)
    assert set(work_folders_of(LocalStore(tmp_path / "a"))) == ours
