"""A checkpoint that is not what was stored is refused, naming the file, and nothing of it is shown."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.damages import DAMAGES, Damage, proof_of
from twopc.errors import CheckpointCorrupted
from twopc.inspect import open_checkpoint


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
@pytest.mark.parametrize("role", ["*.sst", "manifest.json"])
def test_damage_to_a_snapshot_is_refused_by_name(job_folder: Path, role: str, damage: Damage) -> None:
    path = next((job_folder / "chk-1" / "subtask-1").glob(role))
    damage(path)
    with open_checkpoint(checkpoint_dir=job_folder.parent) as checkpoint:
        with pytest.raises(CheckpointCorrupted, match=path.name):
            list(checkpoint.entries())
        assert len(checkpoint.positions) == 2
    assert not proof_of(path).exists()


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
def test_damage_to_the_metadata_is_refused_by_name(job_folder: Path, damage: Damage) -> None:
    path = job_folder / "chk-1" / "metadata.json"
    damage(path)
    with pytest.raises(CheckpointCorrupted, match=r"chk-1/metadata\.json"):
        open_checkpoint(checkpoint_dir=job_folder.parent)
    assert not proof_of(path).exists()


def test_a_checkpoint_folder_that_is_a_link_is_refused(job_folder: Path, tmp_path: Path) -> None:
    (job_folder / "chk-1").rename(tmp_path / "elsewhere")
    (job_folder / "chk-1").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(CheckpointCorrupted, match="chk-1"):
        open_checkpoint(checkpoint_dir=job_folder.parent)
