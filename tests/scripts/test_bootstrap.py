from __future__ import annotations

import sys
from pathlib import Path

import pytest

from scripts import bootstrap


@pytest.fixture
def too_old(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The Python of this run counts as too old; the folder that comes back is all of PATH."""
    monkeypatch.setattr(bootstrap, "OLDEST_VERSION", (sys.version_info.major + 1, 0))
    monkeypatch.setenv("PATH", str(tmp_path))
    return tmp_path


def put_program(folder: Path, name: str, script: str) -> str:
    program = folder / name
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    return str(program)


def test_a_python_that_is_new_enough_goes_on_itself() -> None:
    assert bootstrap.find_python() == sys.executable


def test_an_old_python_hands_over_to_a_newer_one_of_path(too_old: Path) -> None:
    newer = put_program(too_old, "python3.12", "exit 0")
    assert bootstrap.find_python() == newer


def test_a_name_on_path_that_does_not_run_is_passed_over(too_old: Path) -> None:
    put_program(too_old, "python3.13", "exit 127")
    working = put_program(too_old, "python3.11", "exit 0")
    assert bootstrap.find_python() == working


def test_no_python_that_is_new_enough_is_said_in_one_line(too_old: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert bootstrap.main() == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert "install Python 3.11 or newer" in line
