"""Finds and ends what a run has left: the processes that it started, and its folder of temporary files.

A process belongs to a run if its TMPDIR is the run's folder, or lies in it. Processes inherit that, whoever starts
them, in whatever session; and one that does without could leave files anywhere.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

VARIABLE = "TMPDIR"
PATIENCE_SECONDS = 10.0
_POLL_SECONDS = 0.1
_COMMAND_CHARACTERS = 160


@dataclass(frozen=True, slots=True)
class Leftover:
    """A process that outlived the tests; `test` is the one that started it, where that is known."""

    pid: int
    command: str
    test: str

    def __str__(self) -> str:
        return f"process {self.pid}{self.test and f' of {self.test}'}: {self.command}"


def belonging_to(folder: Path) -> set[psutil.Process]:
    """Return the processes of the run with this folder; a zombie (ended, not waited for) is none."""
    return {process for process in psutil.process_iter() if is_alive(process) and _belongs(process, folder)}


def is_alive(process: psutil.Process) -> bool:
    """Whether it has not ended."""
    try:
        return process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False


def end_all(find: Callable[[], Collection[psutil.Process]], grace: float = 0.0) -> list[Leftover]:
    """Kill what is found until nothing is; return what was there when the grace was over."""
    _wait_for_none(find, grace)
    left = {process: _named(process) for process in find()}
    deadline = time.monotonic() + PATIENCE_SECONDS
    # Again and again: who is killed may just have started another.
    while (living := find()) and time.monotonic() < deadline:
        for process in living:
            with suppress(psutil.Error):
                process.kill()
        psutil.wait_procs(living, timeout=1.0)
    return sorted((named for named in left.values() if named is not None), key=lambda each: each.pid)


def empty(folder: Path) -> None:
    """Delete what is in the folder, also what its owner may not write."""
    for parent, names, _files in os.walk(folder):
        for name in names:
            inner = Path(parent, name)
            if not inner.is_symlink():
                with suppress(OSError):
                    inner.chmod(0o700)
    for path in folder.iterdir():
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            with suppress(OSError):
                path.unlink()


def _belongs(process: psutil.Process, folder: Path) -> bool:
    try:
        return Path(process.environ().get(VARIABLE, "/")).is_relative_to(folder)
    except (psutil.Error, OSError):
        return False


def _wait_for_none(find: Callable[[], Collection[psutil.Process]], seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline and find():
        time.sleep(_POLL_SECONDS)


def _named(process: psutil.Process) -> Leftover | None:
    try:
        words = " ".join(process.cmdline())
        # As pytest says it: the test's id, and which part of the test it is in.
        test = process.environ().get("PYTEST_CURRENT_TEST", "").rpartition(" (")[0]
    except (psutil.Error, OSError):
        return None
    half = _COMMAND_CHARACTERS // 2
    return Leftover(process.pid, words if len(words) <= 2 * half else f"{words[:half]} ... {words[-half:]}", test)
