"""A run from its first process to the last: what is started in it has ended when it is over, and its files are gone."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Self

import psutil

from scripts.tiers import keeper, orphans
from scripts.tiers.leftovers import VARIABLE, Leftover, belonging_to, empty, end_all, is_alive

ROOT = Path(__file__).resolve().parents[2]
GRACE_SECONDS = 10.0
"""So long may what tests have told to end take for it, once the tests are over."""


class RunScope:
    """While it is open, what this process starts has a folder for temporary files, and belongs to the run.

    Invariant: a process that ends what is left is there before anything that could be (`keeper.py`), and it does so
    however this one ends.
    """

    def __init__(self) -> None:
        self.folder = Path()
        self._outside = os.environ.get(VARIABLE)

    def __enter__(self) -> Self:
        command = [sys.executable, "-m", keeper.__name__]
        self._keeper = subprocess.Popen(
            command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True
        )
        assert self._keeper.stdout is not None
        if not (said := self._keeper.stdout.readline().strip()):
            raise SystemExit("tests: no folder for temporary files can be made: see above, or set TMPDIR to another")
        self.folder = Path(said)
        self._outside = os.environ.get(VARIABLE)
        os.environ[VARIABLE] = said
        orphans.adopt(True)
        return self

    def __exit__(self, *_: object) -> None:
        if self._outside is None:
            del os.environ[VARIABLE]
        else:
            os.environ[VARIABLE] = self._outside
        # Before the keeper, which does not see those that have nothing of our environment.
        end_all(self._living)
        orphans.adopt(False)
        self._keeper.communicate()
        if self.folder.exists():
            keeper.remove(self.folder)

    def wait(self, process: subprocess.Popen[bytes]) -> int:
        """Return the exit code of a process of the run, when it ends."""
        return orphans.wait(process)

    def sweep(self) -> list[Leftover]:
        """End what still lives of a tier that is over, delete its files, and return what had to be ended."""
        left = end_all(self._living, GRACE_SECONDS)
        empty(self.folder)
        return left

    def _living(self) -> set[psutil.Process]:
        started = {process for process in orphans.descendants() if is_alive(process)}
        return {process for process in started | belonging_to(self.folder) if process.pid != self._keeper.pid}
