"""A scratch folder lives as long as its owner, whatever ends that one."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from twopc.protocol.ids import AttemptId, SubtaskIndex
from twopc.storage.local import LocalStore
from twopc.storage.scratch_folder import CHECKPOINTS, scratch_folder
from twopc.storage.work_folder import make_work_folder

OWNER = """
import sys, time
from pathlib import Path
from twopc.storage.scratch_folder import scratch_folder

with scratch_folder("test", Path(sys.argv[1])) as folder:
    (folder / "state").mkdir()
    print(folder, flush=True)
    time.sleep(600)
"""


def left_by_a_dead_owner(parent: Path, name: str = "twopc-test-abc_0123") -> Path:
    folder = parent / name
    (folder / "state").mkdir(parents=True)
    (folder / "owner.lock").touch()
    return folder


def test_it_is_there_for_its_user_alone_and_gone_afterwards(tmp_path: Path) -> None:
    with scratch_folder("test", tmp_path) as folder:
        assert (folder.parent, folder.stat().st_mode & 0o777) == (tmp_path, 0o700)
        (folder / "deep" / "er").mkdir(parents=True)
    assert list(tmp_path.iterdir()) == []


def test_what_a_killed_owner_left_goes_with_the_next_of_its_kind(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", OWNER, str(tmp_path)], stdout=subprocess.PIPE, text=True) as owner:
        assert owner.stdout is not None
        left = Path(owner.stdout.readline().strip())
        with scratch_folder("test", tmp_path):
            assert (left / "state").exists(), "its owner lives"
        owner.send_signal(signal.SIGKILL)
    assert left.exists()
    with scratch_folder("test", tmp_path):
        assert not left.exists()


def test_two_of_one_process_leave_each_other_alone(tmp_path: Path) -> None:
    with scratch_folder("test", tmp_path) as first, scratch_folder("test", tmp_path):
        assert first.exists()


@pytest.mark.parametrize("name", ["twopc-other-abc", "twopc-test-more-abc", "twopc-tests"])
def test_another_kind_is_left_alone(tmp_path: Path, name: str) -> None:
    other = left_by_a_dead_owner(tmp_path, name)
    with scratch_folder("test", tmp_path):
        assert other.exists()


def test_what_has_no_lock_in_it_is_left_alone(tmp_path: Path) -> None:
    other = tmp_path / "twopc-test-abc"
    other.mkdir()
    with scratch_folder("test", tmp_path):
        assert other.exists()


def test_what_still_runs_in_it_is_ended_before_it_is_deleted(tmp_path: Path) -> None:
    left = left_by_a_dead_owner(tmp_path)
    seen = []
    with scratch_folder("test", tmp_path, before_sweep=lambda folder: seen.append((folder, folder.exists()))):
        assert not left.exists()
    assert seen == [(left, True)]


@pytest.mark.parametrize("killed", [True, False])
def test_what_its_workers_had_elsewhere_goes_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, killed: bool
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "tmp"))
    scratch, others = tmp_path / "scratch", tmp_path / "real" / CHECKPOINTS
    scratch.mkdir()
    kept = make_work_folder(LocalStore(others), "orders", SubtaskIndex(0), AttemptId(1))
    if killed:
        left = left_by_a_dead_owner(scratch)
        work = make_work_folder(LocalStore(left / CHECKPOINTS), "orders", SubtaskIndex(0), AttemptId(1))
    with scratch_folder("test", scratch) as folder:
        if not killed:
            work = make_work_folder(LocalStore(folder / CHECKPOINTS), "orders", SubtaskIndex(0), AttemptId(1))
    assert (work.exists(), work.parent.parent.exists(), kept.exists()) == (False, False, True)
