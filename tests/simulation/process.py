"""A simulated process, and the lanes in which its work waits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field


class Crashed(BaseException):
    """The process that runs now is dead: unwinds it, through every `except Exception`."""


class Stuck(Exception):
    """The run does not come to an end."""


@dataclass(eq=False, slots=True)
class Process:
    """Something that can be killed, or paused and woken, with clocks of its own. `kind` is for coverage.

    Its clocks differ from the world's by `monotonic_ms` and `skew_ms`.
    """

    name: str
    kind: str
    alive: bool = True
    paused_until: int = 0
    monotonic_ms: int = 0
    skew_ms: int = 0


@dataclass(eq=False, slots=True)
class Lane:
    """One thread of a process: what runs in it runs one after the other; what comes while it is busy waits."""

    process: Process
    name: str
    busy: bool = False
    waiting: list[Callable[[], None]] = field(default_factory=list)
