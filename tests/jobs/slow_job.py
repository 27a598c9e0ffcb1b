"""A job that is slow until a fault has struck, so that there is input left to strike in; and how it is run."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

from tests.jobs.cli import CommandResult, twopc
from twopc.faults.armed_faults import ArmedFault, armed
from twopc.faults.points import VARIABLE

EXAMPLES = Path(__file__).parents[2] / "examples"

SLOWLY = """
import os, time
from pathlib import Path

def slowly(value):
    if not Path(os.environ["STRUCK"]).exists():
        time.sleep({seconds})
    return value
"""
"""The head of a job's file: a function that sleeps for so many `seconds` a call until the file in STRUCK is there."""

COUNT = """
def count(total, value):
    total = (total or 0) + 1
    return total, total
"""
"""A function for `stateful_map`, by which each record becomes the number that it has among those of its key."""

_OF_JOB = """
name = os.environ["JOB_NAME"]
folder = os.environ["FOLDER"]
"""


class SlowJob:
    """A job's file in a folder of its own, beside what it imports.

    `body` is the job, with what it imports of twopc; it has at hand `name`, `folder` (a text) and `slowly`, which
    sleeps for so many seconds a call until the first armed fault has struck.
    """

    def __init__(self, servers: str, name: str, folder: Path, body: str, *, beside: str = "", seconds: float = 0.002):
        self._servers, self._name, self._folder = servers, name, folder
        if beside:
            shutil.copy(EXAMPLES / beside, folder)
        (folder / "job.py").write_text(SLOWLY.format(seconds=seconds) + _OF_JOB + body)

    def run(self, *arms: ArmedFault, restore_from: str = "latest") -> CommandResult:
        """Run it to the end of its input on two subtasks, or to where it is killed."""
        struck = arms[0].once(self._folder) if arms else self._folder
        return twopc(
            *("run", str(self._folder / "job.py"), "-b", self._servers),
            *("--checkpoint-dir", str(self._folder / "checkpoints"), "-p", "2", "--checkpoint-interval", "200ms"),
            *("--host", "process", "--until-end", "--from", restore_from, "-o", "json"),
            JOB_NAME=self._name,
            FOLDER=str(self._folder),
            STRUCK=str(struck),
            **{VARIABLE: armed(arms, self._folder)},
        )

    def survive(self, *arms: ArmedFault) -> dict[str, Any]:
        """Run it to the end of its input, through a subtask's death by each of these; return its report."""
        finished = self.run(*arms)
        assert finished.code == 0, finished.err
        assert all(arm.once(self._folder).exists() for arm in arms)
        report: dict[str, Any] = json.loads(finished.out)
        assert report["attempts"] > len(arms)
        return report
