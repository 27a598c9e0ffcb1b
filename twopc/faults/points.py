"""The crash points, at which a test or a drill may end, pause or hold a process: no-ops unless something is armed.

Armed by the environment variable TWOPC_CRASH_POINT, which child processes inherit, with one or more of these, `;`
between them:

    <point>[,checkpoint=N][,subtask=I],once=FILE[,kill|stop|term|hold|pause=MS]

The first process that reaches the point, at checkpoint N or a later one, and in subtask I if given, creates FILE,
holding its process id, and then sends itself SIGKILL (if nothing else is said), SIGSTOP or SIGTERM; with `hold` it
waits until FILE.release exists or it is killed from outside, with `pause` for so many milliseconds, and goes on. FILE
exists for good then, so that no process after it does the same again; the next one armed at the same point may.

With TWOPC_CRASH_POINTS_REACHED naming a folder, every process notes in a file there which points it came to.
"""

from __future__ import annotations

import os
import signal
import time
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from twopc.errors import ConfigurationError
from twopc.faults.crash_table import CrashPoint

__all__ = ["REACHED_VARIABLE", "VARIABLE", "CrashPoint", "note_reached", "points_reached", "reached"]

VARIABLE = "TWOPC_CRASH_POINT"
REACHED_VARIABLE = "TWOPC_CRASH_POINTS_REACHED"


class _Action(Enum):
    KILL = "kill"
    STOP = "stop"
    TERM = "term"
    HOLD = "hold"
    PAUSE = "pause"


_SIGNALS = {_Action.KILL: signal.SIGKILL, _Action.STOP: signal.SIGSTOP, _Action.TERM: signal.SIGTERM}


@dataclass(frozen=True, slots=True)
class _Armed:
    point: CrashPoint
    checkpoint: int
    subtask: int | None
    once: Path
    action: _Action
    pause_ms: int

    def is_meant(self, point: CrashPoint, checkpoint: int, subtask: int) -> bool:
        return (
            self.point is point
            and checkpoint >= self.checkpoint
            and (self.subtask is None or self.subtask == subtask)
            and self._first()
        )

    def _first(self) -> bool:
        """Whether no process has been here; from now on, this one has."""
        try:
            descriptor = os.open(self.once, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
        except FileExistsError:
            return False
        os.write(descriptor, b"%d\n" % os.getpid())
        os.close(descriptor)
        return True

    def act(self) -> None:
        if self.action is _Action.PAUSE:
            time.sleep(self.pause_ms / 1000)
        elif self.action is _Action.HOLD:
            release = self.once.with_name(self.once.name + ".release")
            while not release.exists():
                time.sleep(0.005)
        else:
            os.kill(os.getpid(), _SIGNALS[self.action])


class _Counter:
    """Notes each point once, in a file of this process."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._seen: set[CrashPoint] = set()

    def note(self, point: CrashPoint) -> None:
        if point not in self._seen:
            self._seen.add(point)
            note_reached(self._folder, point)


def note_reached(folder: Path, point: CrashPoint) -> None:
    """Say for a place that is no line of ours that it was reached."""
    with (folder / str(os.getpid())).open("a") as file:
        file.write(f"{point.name}\n")


def points_reached(folder: Path) -> set[CrashPoint]:
    """Return the points that any process has noted in this folder."""
    return {CrashPoint[line] for file in folder.iterdir() for line in file.read_text().splitlines()}


def _parse(text: str) -> tuple[_Armed, ...]:
    try:
        return tuple(_parse_one(part) for part in text.split(";") if part.strip())
    except (KeyError, ValueError) as error:
        raise ConfigurationError(
            f"{VARIABLE}={text!r} can't be understood: {error}; see twopc.faults.points"
        ) from error


def _parse_one(text: str) -> _Armed:
    name, *options = text.split(",")
    values = dict(option.partition("=")[::2] for option in options)
    actions = [action for action in _Action if action.value in values]
    if len(actions) > 1:
        raise ValueError(f"{text!r} asks for more than one action")
    action = actions[0] if actions else _Action.KILL
    return _Armed(
        point=CrashPoint[name.strip().upper().replace("-", "_")],
        checkpoint=int(values.get("checkpoint", 0)),
        subtask=int(values["subtask"]) if "subtask" in values else None,
        once=Path(values["once"]),
        action=action,
        pause_ms=int(values["pause"]) if action is _Action.PAUSE else 0,
    )


_armed = _parse(os.environ.get(VARIABLE, ""))
_counter = _Counter(Path(os.environ[REACHED_VARIABLE])) if os.environ.get(REACHED_VARIABLE) else None


def reached(point: CrashPoint, *, checkpoint: int = 0, subtask: int = -1) -> None:
    """Say that this place was reached; whatever is armed for it happens here, in the order in which it is armed."""
    if _counter is not None:
        _counter.note(point)
    for armed in _armed:
        if armed.is_meant(point, checkpoint, subtask):
            armed.act()
