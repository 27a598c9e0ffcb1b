"""A disk that is full for real declines a checkpoint, and the next one is stored when there is room again."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = [sys.executable, "-m", "tests.state.full_disk"]
SMALL = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", 'mount -t tmpfs -o size=2m none "$0" && "$@"']


def can_mount(folder: Path) -> bool:
    """Whether this user may have a small file system of its own."""
    if shutil.which("unshare") is None:
        return False
    return subprocess.run([*SMALL, str(folder), "true"], capture_output=True, check=False).returncode == 0


def test_a_file_system_without_room_declines_a_checkpoint(tmp_path: Path) -> None:
    if not can_mount(tmp_path):
        pytest.skip("this user may not mount a small file system")
    command = [*SMALL, str(tmp_path), *PROGRAM, str(tmp_path / "job"), "fill"]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr


def test_a_limit_on_the_size_of_files_declines_a_checkpoint(tmp_path: Path) -> None:
    command = [*PROGRAM, str(tmp_path / "job"), "limit"]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
