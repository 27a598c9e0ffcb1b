"""What belongs to a run is found by where it keeps its temporary files, and nothing else is touched."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from scripts.tiers.leftovers import belonging_to, empty, end_all

Sleep = Callable[[Path], "subprocess.Popen[bytes]"]


@pytest.fixture
def sleep() -> Iterator[Sleep]:
    """Starts a process that has this folder for its temporary files."""
    running: list[subprocess.Popen[bytes]] = []

    def start(folder: Path) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-c", "import time; print(flush=True); time.sleep(300)"]
        running.append(subprocess.Popen(command, env=os.environ | {"TMPDIR": str(folder)}, stdout=subprocess.PIPE))
        stdout = running[-1].stdout
        assert stdout is not None
        stdout.readline()
        return running[-1]

    yield start
    for each in running:
        each.kill()
        each.communicate()


def test_processes_belong_to_a_run_by_its_folder_or_one_in_it_and_strangers_live_on(
    tmp_path: Path, sleep: Sleep
) -> None:
    folder = tmp_path / "run"
    own = {sleep(folder).pid, sleep(folder / "inner" / "tmp").pid}
    stranger = sleep(tmp_path / "run-of-another")
    assert {process.pid for process in belonging_to(folder)} == own
    assert {left.pid for left in end_all(lambda: belonging_to(folder))} == own
    assert belonging_to(folder) == set()
    assert stranger.poll() is None


def test_what_ends_within_the_grace_is_not_left(tmp_path: Path, sleep: Sleep) -> None:
    ending = sleep(tmp_path)
    found: list[int] = []

    def find() -> set[psutil.Process]:
        """End it once it was found twice."""
        living = belonging_to(tmp_path)
        found.append(len(living))
        if len(found) > 1:
            ending.kill()
        return living

    assert end_all(find, grace=60) == []
    assert (found[0], found[-1]) == (1, 0)


def test_a_folder_is_emptied_of_what_its_owner_may_not_write_and_of_nothing_outside(tmp_path: Path) -> None:
    folder, outside = tmp_path / "run", tmp_path / "outside"
    inner = folder / "a" / "b"
    inner.mkdir(parents=True)
    outside.mkdir(mode=0o500)
    (inner / "file").touch()
    (folder / "file").touch()
    (folder / "link").symlink_to(outside)
    (inner / "link").symlink_to(outside)
    inner.chmod(0)
    inner.parent.chmod(0o500)
    empty(folder)
    assert list(folder.iterdir()) == []
    assert outside.stat().st_mode & 0o777 == 0o500
