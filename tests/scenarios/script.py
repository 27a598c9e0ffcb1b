"""The head of a scenario file: a title, what the story is about, the job, and what happens to it.

A line `name: value` before the `----` is an instruction, every other one is prose:

    records: 4 4                      how many records each input partition holds
    subtasks: 2                       the parallelism of the attempts that start from now on
    interval: 500                     milliseconds between two checkpoints
    concurrent: 2                     how many checkpoints may be in flight
    timeout: 3000                     milliseconds after which the broker aborts an open transaction
    until: 750                        milliseconds at which the transcript ends, but for how the job ended
    fault: crash AFTER_ACK @ subtask-0.1 #2
                                      what fails, where, and on which occasion, as the simulation names it
    at 700: kill subtask-0.1          what people and the outside world do, and when
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

from tests.simulation.dice import Strike

BREAK = "----"
_INSTRUCTION = re.compile(
    r"(?P<name>records|subtasks|interval|concurrent|timeout|until|fault|at (?P<at>\d+)): (?P<value>.+)"
)


@dataclass(slots=True)
class Script:
    """The script of a scenario."""

    records: tuple[int, ...] = (4,)
    numbers: dict[str, int] = field(default_factory=dict)
    faults: set[Strike] = field(default_factory=set)
    actions: list[tuple[int, str]] = field(default_factory=list)

    @classmethod
    def parse(cls, head: str) -> Script:
        script = cls()
        for line in head.splitlines():
            match = _INSTRUCTION.fullmatch(line)
            if match is None:
                continue
            name, value = match["name"], match["value"]
            if match["at"]:
                script.actions.append((int(match["at"]), value))
            elif name == "records":
                script.records = tuple(map(int, value.split()))
            elif name == "fault":
                script.faults.add(Strike.parse(value))
            else:
                script.numbers[name] = int(value)
        return script


def read(path: Path) -> tuple[str, str]:
    """Return the head of a scenario file, and the transcript that it holds."""
    head, _, transcript = path.read_text().partition(f"{BREAK}\n")
    return head, transcript


def write(path: Path, head: str, transcript: str) -> None:
    path.write_text(f"{head}{BREAK}\n{transcript}")
