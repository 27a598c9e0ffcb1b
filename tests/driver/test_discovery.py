"""How a command finds a running driver's coordinator, and what must not be found."""

from __future__ import annotations

import json
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from twopc.driver.discovery import announced, find, find_all
from twopc.errors import ConfigurationError
from twopc.storage.local import LocalStore
from twopc.user_folders import STATE_VARIABLE

ADDRESS, TOKEN = "127.0.0.1:4711", "canary-token"


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(STATE_VARIABLE, str(tmp_path / "state"))
    return tmp_path / "state" / "coordinators"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "checkpoints").mkdir()
    return tmp_path / "checkpoints"


def test_a_run_is_found_while_it_lasts_and_not_after(root: Path, state: Path) -> None:
    with announced("late", LocalStore(root), ADDRESS, TOKEN):
        found = find(LocalStore(root), "late")
        assert (found.address, found.token) == (ADDRESS, TOKEN)
        assert find_all(LocalStore(root)) == [found]
    with pytest.raises(ConfigurationError, match="--coordinator"):
        find(LocalStore(root), "late")
    assert list(state.iterdir()) == []


def test_it_is_found_by_whatever_path_leads_to_the_folder(root: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(root)
    with announced("late", LocalStore(tmp_path / "link" / ".." / "checkpoints"), ADDRESS, TOKEN):
        assert find(LocalStore(tmp_path / "link"), "late").address == ADDRESS


def test_another_job_and_another_folder_are_not_meant(root: Path, tmp_path: Path) -> None:
    with announced("late", LocalStore(root), ADDRESS, TOKEN):
        for folder, job in ((root, "early"), (tmp_path, "late")):
            with pytest.raises(ConfigurationError, match=f"no run of job '{job}'"):
                find(LocalStore(folder), job)
        assert find_all(LocalStore(tmp_path)) == []


def test_nobody_else_can_read_it_and_nothing_of_it_is_in_the_checkpoint_folder(root: Path, state: Path) -> None:
    with announced("late", LocalStore(root), ADDRESS, TOKEN):
        (file,) = state.iterdir()
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert stat.S_IMODE(state.stat().st_mode) == 0o700
        assert list(root.rglob("*")) == []
        assert TOKEN not in repr(find(LocalStore(root), "late"))


def test_what_a_killed_run_left_behind_is_not_believed_and_removed(root: Path, state: Path) -> None:
    program = (
        "import os, pathlib, sys\n"
        "from twopc.driver.discovery import announced\n"
        "from twopc.storage.local import LocalStore\n"
        "with announced('late', LocalStore(pathlib.Path(sys.argv[1])), '127.0.0.1:4711', 'canary-token'):\n"
        "    os.kill(os.getpid(), 9)\n"
    )
    subprocess.run([sys.executable, "-c", program, str(root)], timeout=240, check=False)
    assert len(list(state.iterdir())) == 1
    with pytest.raises(ConfigurationError, match="no run"):
        find(LocalStore(root), "late")
    assert list(state.iterdir()) == []


@pytest.mark.parametrize(
    ("field", "value"), [("started", 1.0), ("host", "another-machine")], ids=["another process", "another machine"]
)
def test_a_process_id_alone_proves_nothing(root: Path, state: Path, field: str, value: object) -> None:
    with announced("late", LocalStore(root), ADDRESS, TOKEN):
        (file,) = state.iterdir()
        file.write_text(json.dumps({**json.loads(file.read_text()), field: value}))
        with pytest.raises(ConfigurationError, match="no run"):
            find(LocalStore(root), "late")


@pytest.mark.parametrize("content", ["", "{", "[]", "{}", '{"job": "late"}', "\x00"])
def test_a_file_that_is_none_of_ours_is_passed_over(root: Path, state: Path, content: str) -> None:
    with announced("late", LocalStore(root), ADDRESS, TOKEN):
        (file,) = state.iterdir()
        file.write_text(content)
        assert find_all(LocalStore(root)) == []


def test_a_run_that_began_later_keeps_the_name(root: Path) -> None:
    with announced("late", LocalStore(root), "127.0.0.1:1", "first"):
        later = announced("late", LocalStore(root), ADDRESS, TOKEN)
        later.__enter__()
    assert find(LocalStore(root), "late").address == ADDRESS
    later.__exit__(None, None, None)


def test_a_run_goes_on_where_nothing_can_be_written(root: Path, state: Path, caplog: pytest.LogCaptureFixture) -> None:
    state.parent.write_text("no folder")
    with announced("late", LocalStore(root), ADDRESS, TOKEN):
        assert "won't find this job" in caplog.text
    assert TOKEN not in caplog.text
