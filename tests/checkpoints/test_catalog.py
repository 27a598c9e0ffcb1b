"""Reading a checkpoint folder from outside, as the command line does."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.coordinator.kit import JOB, Scene, checkpoint
from twopc.checkpoints.catalog import find_checkpoint, read_job
from twopc.errors import ConfigurationError
from twopc.storage.local import LocalStore
from twopc.storage.store import jobs_in


class MeetingStore(LocalStore):
    """Lets something happen before each name is read."""

    def __init__(self, root: Path, happen: Callable[[str], None]) -> None:
        super().__init__(root, "")
        self._happen = happen

    def within(self, part: str) -> MeetingStore:
        return MeetingStore(self.root / part, self._happen)

    def get(self, name: str) -> bytes:
        self._happen(name)
        return super().get(name)


def run_job(root: Path, completed: int) -> Scene:
    scene = Scene(LocalStore(root / JOB))
    scene.run()
    for number in range(1, completed + 1):
        scene.complete(number)
    return scene


def test_every_completed_checkpoint_is_listed_with_its_confirmations(tmp_path: Path) -> None:
    run_job(tmp_path, completed=2)
    found = read_job(LocalStore(tmp_path), JOB)
    assert jobs_in(LocalStore(tmp_path)) == [JOB]
    assert found.attempt == 1
    assert [entry.checkpoint_id for entry in found.completed] == [1, 2]
    newest = found.completed[-1]
    assert newest.metadata is not None
    assert newest.confirmed == {committable.name for committable in newest.metadata.committables}
    assert newest.place == str(tmp_path / JOB / "chk-2")


def test_a_damaged_checkpoint_is_listed_with_its_damage(tmp_path: Path) -> None:
    run_job(tmp_path, completed=2)
    (tmp_path / JOB / "chk-2" / "metadata.json").write_bytes(b"{}")
    first, second = read_job(LocalStore(tmp_path), JOB).completed
    assert first.damage == ""
    assert second.metadata is None
    assert "chk-2/metadata.json" in second.damage


def test_a_missing_metadata_file_is_listed_as_damage(tmp_path: Path) -> None:
    run_job(tmp_path, completed=1)
    (tmp_path / JOB / "chk-1" / "metadata.json").unlink()
    (entry,) = read_job(LocalStore(tmp_path), JOB).completed
    assert "missing" in entry.damage


def test_a_checkpoint_that_retention_deletes_between_ledger_and_metadata_is_no_damage(tmp_path: Path) -> None:
    scene = run_job(tmp_path, completed=4)
    pruned: list[int] = []

    def happen(name: str) -> None:
        if name.endswith("metadata.json") and not pruned:
            pruned.append(5)
            scene.complete(5)

    found = read_job(MeetingStore(tmp_path, happen), JOB).completed
    assert [(entry.checkpoint_id, entry.damage) for entry in found] == [(number, "") for number in (2, 3, 4, 5)]


def test_a_reader_that_is_slower_than_retention_reads_again_until_it_is_faster_once(tmp_path: Path) -> None:
    scene = run_job(tmp_path, completed=4)
    following = iter(range(5, 30))

    def happen(name: str) -> None:
        if name.endswith("metadata.json") and (number := next(following, None)):
            scene.complete(number)

    found = read_job(MeetingStore(tmp_path, happen), JOB).completed
    assert [(entry.checkpoint_id, entry.damage) for entry in found] == [(number, "") for number in (26, 27, 28, 29)]


def test_what_is_wrong_though_nothing_changes_is_told_at_once(tmp_path: Path) -> None:
    run_job(tmp_path, completed=1)
    (tmp_path / JOB / "chk-1" / "metadata.json").unlink()
    asked: list[str] = []

    def happen(name: str) -> None:
        asked.append(name)

    (entry,) = read_job(MeetingStore(tmp_path, happen), JOB).completed
    assert "missing" in entry.damage
    assert len(set(asked)) == len(asked)


def test_a_job_that_is_not_there_is_refused_with_those_that_are(tmp_path: Path) -> None:
    run_job(tmp_path, completed=1)
    with pytest.raises(ConfigurationError, match=f"jobs there: {JOB}"):
        read_job(LocalStore(tmp_path), "other")


def test_a_name_that_would_leave_the_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="can't be used"):
        read_job(LocalStore(tmp_path), "../elsewhere")


def test_a_checkpoint_that_is_not_there_is_refused_with_those_that_are(tmp_path: Path) -> None:
    run_job(tmp_path, completed=2)
    found = read_job(LocalStore(tmp_path), JOB)
    assert find_checkpoint(found, checkpoint(1)).checkpoint_id == 1
    with pytest.raises(ConfigurationError, match="completed: 1, 2"):
        find_checkpoint(found, checkpoint(9))


def test_no_folder_holds_no_jobs(tmp_path: Path) -> None:
    assert jobs_in(LocalStore(tmp_path / "nowhere")) == []
