"""What `twopc checkpoints show` says of the states in a checkpoint, and of times that nobody wrote down."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.cli.test_checkpoints import answer, run
from tests.stored_job import StoredJob
from twopc.checkpoints.catalog import CheckpointEntry
from twopc.cli import checkpoints, state_sizes
from twopc.cli.checkpoint_report import describe
from twopc.cli.tables import print_tables
from twopc.cli.times_report import time_tables
from twopc.errors import CheckpointCorrupted
from twopc.kafka.positions import offset_status
from twopc.kafka.positions.offset_status import OffsetStatus
from twopc.protocol.facts import CheckpointMetadata
from twopc.protocol.ids import CheckpointId


@pytest.fixture
def keyed(tmp_path: Path) -> StoredJob:
    """A job of which a checkpoint holds two states, each in both subtasks."""
    job = StoredJob(tmp_path / "checkpoints", keyed={"seen": {b"k1": b"12", b"k2": b"3"}, "total": {b"k1": b"1"}})
    job.checkpoint()
    return job


def test_show_counts_the_keys_of_each_state_where_there_is_little_to_read(keyed: StoredJob) -> None:
    where = ("show", "latest", "--checkpoint-dir", keyed.root)
    assert [(each["state"], each["keys"]) for each in answer(*where)["states"]] == [("seen", 4), ("total", 2)]
    (line,) = [line for line in run(*where).stdout.splitlines() if "seen" in line]
    assert " 4 " in line


def test_show_counts_much_state_when_asked_and_says_else_that_it_did_not(
    keyed: StoredJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(state_sizes, "COUNTED_BYTES_MAX", 100)
    where = ("show", "latest", "--checkpoint-dir", keyed.root)
    assert answer(*where)["states"] is None
    assert "--states does" in run(*where).stdout
    assert [each["state"] for each in answer(*where, "--states")["states"]] == ["seen", "total"]


def test_show_tells_a_damaged_snapshot_and_shows_what_is_known(keyed: StoredJob) -> None:
    manifest = keyed.folder / "chk-1" / "subtask-1.json"
    manifest.write_bytes(manifest.read_bytes()[:-20])
    result = run("show", "latest", "--checkpoint-dir", keyed.root)
    assert isinstance(result.exception, CheckpointCorrupted)
    assert "chk-1/subtask-1.json is truncated" in str(result.exception)
    assert "can't be counted" in result.stdout
    assert "Positions" in result.stdout


def test_show_counts_the_checkpoint_that_it_shows_though_a_newer_one_completes(
    keyed: StoredJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stood_meanwhile(*_: Any) -> tuple[OffsetStatus, ...]:
        keyed.checkpoint()
        keyed.forget(CheckpointId(1))
        return ()

    monkeypatch.setattr(offset_status, "fetch_offset_statuses", stood_meanwhile)
    shown = answer("show", "latest", "--states", "--checkpoint-dir", keyed.root, "-b", "broker:9092")
    assert shown["checkpoint_id"] == 1
    assert [each["keys"] for each in shown["states"]] == [4, 2]


def test_a_checkpoint_that_retention_deletes_before_it_is_counted_is_shown_uncounted(
    keyed: StoredJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    keyed.checkpoint()

    def described_meanwhile(job: str, entry: CheckpointEntry, metadata: CheckpointMetadata) -> dict[str, Any]:
        keyed.forget(CheckpointId(1))
        return describe(job, entry, metadata)

    monkeypatch.setattr(checkpoints, "describe", described_meanwhile)
    result = run("show", "1", "--checkpoint-dir", keyed.root)
    assert result.exit_code == 0
    assert "keys are not counted: checkpoint 1 of job 'flights' was deleted while it was read" in result.stdout


def test_a_checkpoint_without_transactions_says_why_some_of_its_times_are_not_known(
    capsys: pytest.CaptureFixture[str],
) -> None:
    description = {
        "times": {"triggered_ms": 0, "acknowledged_ms": 5, "completed_ms": None, "confirmed_ms": None, "subtasks": []},
        "snapshots": [],
        "committables": 0,
    }
    print_tables(time_tables(description))
    assert capsys.readouterr().out.count("not written down: no transaction") == 2
