"""A checkpoint that is not what was stored is refused, naming the file, and nothing of it is shown."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.checkpoints.damages import DAMAGES, Damage, cut_half, flip_bit, proof_of
from tests.stored_job import stored_path
from twopc.errors import CheckpointCorrupted
from twopc.inspect import open_checkpoint
from twopc.protocol.envelope import encode_fact


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
@pytest.mark.parametrize("role", ["*.sst", "manifest.json"])
def test_damage_to_a_snapshot_is_refused_by_name(job_folder: Path, role: str, damage: Damage) -> None:
    path = stored_path(job_folder, f"chk-1/subtask-1/{role}")
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


def test_every_file_that_is_wrong_is_named_with_what_is_wrong_with_it(job_folder: Path) -> None:
    left, right = "chk-1/subtask-0", "chk-1/subtask-1"
    stored_path(job_folder, f"{left}/CURRENT").unlink()
    cut_half(stored_path(job_folder, f"{left}/*.sst"))
    flip_bit(stored_path(job_folder, f"{right}/MANIFEST-*"))
    (job_folder / "chk-1" / "planted").write_bytes(b"")
    with open_checkpoint(checkpoint_dir=job_folder.parent) as checkpoint, pytest.raises(CheckpointCorrupted) as caught:
        list(checkpoint.entries())
    named = re.findall(r"flights/\S+ is [a-z]+", str(caught.value))
    assert sorted(re.sub(r"\d{6}", "N", re.sub("-[0-9a-f]{16}-", "-T-", name)) for name in named) == [
        "flights/chk-1/planted is foreign",
        "flights/files/1-0-T-CURRENT is missing",
        "flights/files/1-0-T-N.sst is truncated",
        "flights/files/1-1-T-MANIFEST-N is damaged",
    ]


@pytest.mark.parametrize(
    ("contents", "problem"),
    [
        (encode_fact("metadata", {}).replace(b'"format":1', b'"format":2'), "newer format"),
        (encode_fact("state-manifest", {}), "foreign"),
        (encode_fact("metadata", {})[:-9], "truncated"),
        (b"PK\x03\x04", "truncated"),
    ],
)
def test_metadata_that_is_not_ours_says_what_it_is_instead(job_folder: Path, contents: bytes, problem: str) -> None:
    (job_folder / "chk-1" / "metadata.json").write_bytes(contents)
    with pytest.raises(CheckpointCorrupted, match=rf"flights/chk-1/metadata\.json is {problem}"):
        open_checkpoint(checkpoint_dir=job_folder.parent)


def test_a_checkpoint_folder_that_is_a_link_is_refused(job_folder: Path, tmp_path: Path) -> None:
    (job_folder / "chk-1").rename(tmp_path / "elsewhere")
    (job_folder / "chk-1").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(CheckpointCorrupted, match="chk-1"):
        open_checkpoint(checkpoint_dir=job_folder.parent)
