"""From which checkpoint a run starts, as `--from` names it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.stored_job import JOB, StoredJob
from twopc.config import RunSettings
from twopc.driver.start import checkpoint_to_restore
from twopc.errors import ConfigurationError
from twopc.protocol.checkpoints import CheckpointKind


@pytest.fixture
def root(tmp_path: Path) -> Path:
    job = StoredJob(tmp_path / "checkpoints")
    job.checkpoint(CheckpointKind.SAVEPOINT, "before-1.2")
    job.checkpoint()
    return job.root


def chosen(root: Path, restore_from: str, job: str = JOB) -> str:
    return checkpoint_to_restore(RunSettings(checkpoint_dir=str(root), restore_from=restore_from), job)


@pytest.mark.parametrize("name", ["latest", "none"])
def test_latest_and_none_are_left_to_the_coordinator(tmp_path: Path, name: str) -> None:
    assert chosen(tmp_path, name) == name


@pytest.mark.parametrize("name", ["1", "chk-1", "before-1.2"])
def test_an_id_and_a_label_name_a_checkpoint_of_the_job(root: Path, name: str) -> None:
    assert chosen(root, name) == "1"


def test_the_path_of_a_savepoint_names_it(root: Path) -> None:
    assert chosen(root, str(root / JOB / "chk-1")) == "1"


def test_what_is_not_there_is_refused(root: Path) -> None:
    with pytest.raises(ConfigurationError, match="completed: 1, 2"):
        chosen(root, "7")
    with pytest.raises(ConfigurationError, match="no job 'other'"):
        chosen(root, "1", "other")
    with pytest.raises(ConfigurationError, match=f"belongs to job '{JOB}'"):
        chosen(root, str(root / JOB / "chk-1"), "other")
