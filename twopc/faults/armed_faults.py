"""Faults at crash points, as data: what a process is told by its environment, see `twopc.faults.points`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from twopc.faults.points import CrashPoint


class ProcessAction(Enum):
    """The act of the process on itself at the point; the value is its name in the environment."""

    KILL = "kill"
    STOP = "stop"
    TERM = "term"
    HOLD = "hold"
    PAUSE = "pause"


@dataclass(frozen=True, slots=True)
class ArmedFault:
    """One armed point: the first process there, at this checkpoint or a later one, acts, and no other after it.

    `name` tells arms at one point from each other; `pause_ms` is for ProcessAction.PAUSE.
    """

    point: CrashPoint
    act: ProcessAction = ProcessAction.KILL
    checkpoint: int = 0
    subtask: int | None = None
    pause_ms: int = 0
    name: str = ""

    def once(self, folder: Path) -> Path:
        """The file that appears when it has happened, holding the process id."""
        return folder / f"{self.point.name.lower()}{self.name}-{self.act.value}"

    def release(self, folder: Path) -> Path:
        """The file that lets go of who is held."""
        once = self.once(folder)
        return once.with_name(f"{once.name}.release")

    def has_happened(self, folder: Path) -> bool:
        once = self.once(folder)
        return once.exists() and once.read_text().endswith("\n")

    def disarm(self, folder: Path) -> None:
        """Forget that it has happened: the next process there acts again."""
        # The other way round somebody could come, and be let go at once.
        self.release(folder).unlink(missing_ok=True)
        self.once(folder).unlink(missing_ok=True)

    def armed(self, folder: Path) -> str:
        """The arm as the environment says it."""
        where = f",checkpoint={self.checkpoint}" if self.checkpoint else ""
        who = f",subtask={self.subtask}" if self.subtask is not None else ""
        what = f"{self.act.value}={self.pause_ms}" if self.act is ProcessAction.PAUSE else self.act.value
        return f"{self.point.name}{where}{who},once={self.once(folder)},{what}"


def armed(faults: Iterable[ArmedFault], folder: Path) -> str:
    """Several armed points as the environment says them."""
    return ";".join(fault.armed(folder) for fault in faults)
