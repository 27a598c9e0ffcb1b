"""Checkpoint folders as versions of twopc have left them, one a format: all tools read them, and a restore does.

A format that changes gets an archive beside the old ones, which stay as they are: of `job.py`, run twice with
`--until-end -p 2`, the first time with `--checkpoint-inline-bytes 0`.
"""

from __future__ import annotations

import json
import tarfile
from pathlib import Path

import pytest
from typer.testing import CliRunner

from twopc import cli
from twopc.inspect import open_checkpoint
from twopc.kafka.positions.partition_position import offsets_of
from twopc.protocol.envelope import FORMAT_VERSION
from twopc.state.rocksdb import RocksDBBackend
from twopc.state.snapshot_store import SnapshotStore
from twopc.storage.local import LocalStore

GOLDEN = Path(__file__).parent / "golden"
ARCHIVES = sorted(GOLDEN.glob("*.tar.gz"))
COUNTS = {1: {"anna": 2, "bert": 1, "cleo": 1}, 2: {"anna": 3, "bert": 1, "cleo": 1, "dora": 1}}


@pytest.fixture(params=ARCHIVES, ids=lambda path: path.name.partition(".")[0])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A checkpoint folder as that version left it."""
    with tarfile.open(request.param) as archive:
        archive.extractall(tmp_path, filter="tar")
    return tmp_path


def test_there_is_one_of_this_format() -> None:
    assert f"format-{FORMAT_VERSION}.tar.gz" in [path.name for path in ARCHIVES]


def test_every_file_is_whole_and_all_checkpoints_are_found(folder: Path) -> None:
    asked = CliRunner().invoke(cli.app, ["checkpoints", "verify", "--checkpoint-dir", str(folder), "-o", "json"])
    [said] = json.loads(asked.stdout)
    assert (said["checkpoints"], said["findings"], said["left_over"]) == ([1, 2], [], [])


@pytest.mark.parametrize("checkpoint_id", COUNTS)
def test_states_and_positions_are_those_that_were_stored(folder: Path, checkpoint_id: int) -> None:
    with open_checkpoint(checkpoint_id, checkpoint_dir=folder) as checkpoint:
        assert {each.key.decode(): each.value for each in checkpoint.state("count").items()} == COUNTS[checkpoint_id]
        assert sum(offsets_of(checkpoint.positions).values()) == sum(COUNTS[checkpoint_id].values())
        seen = {each.key: each.value for each in checkpoint.state("seen/by_value").items()}
        assert seen[b"anna"] == {"tea": 2} | ({"bread": 1} if checkpoint_id == 2 else {})


def test_a_snapshot_in_files_is_restored_from(folder: Path, tmp_path: Path) -> None:
    with open_checkpoint(1, checkpoint_dir=folder) as checkpoint:
        handles = {each.subtask: each.state for each in checkpoint.metadata.snapshots}
    store = SnapshotStore(LocalStore(folder / "golden"))
    for subtask, handle in handles.items():
        where = tmp_path / f"restored-{subtask}"
        store.fetch(handle, where)
        RocksDBBackend.open_restored(where).close()
