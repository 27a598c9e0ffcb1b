"""Faults at crash points, as data: what a process is told by its environment, see `twopc.crashpoints`."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from twopc.crashpoints import CrashPoint


class Act(Enum):
    """What the process does to itself at the point; the value is its name in the environment."""

    KILL = "kill"
    STOP = "stop"
    TERM = "term"
    HOLD = "hold"
    PAUSE = "pause"


@dataclass(frozen=True, slots=True)
class Arm:
    """One armed point: the first process there, at this checkpoint or a later one, acts, and no other after it.

    `name` tells arms at one point from each other; `pause_ms` is for Act.PAUSE.
    """

    point: CrashPoint
    act: Act = Act.KILL
    checkpoint: int = 0
    subtask: int | None = None
    pause_ms: int = 0
    name: str = ""

    def once(self, folder: Path) -> Path:
        """The file that appears when it has happened, holding the process id."""
        return folder / f"{self.point.name.lower()}{self.name}-{self.act.value}"

    def armed(self, folder: Path) -> str:
        """The arm as the environment says it."""
        where = f",checkpoint={self.checkpoint}" if self.checkpoint else ""
        who = f",subtask={self.subtask}" if self.subtask is not None else ""
        what = f"{self.act.value}={self.pause_ms}" if self.act is Act.PAUSE else self.act.value
        return f"{self.point.name}{where}{who},once={self.once(folder)},{what}"
