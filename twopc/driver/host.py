"""Where subtasks run, as the driver sees it: Spark, or plain processes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from twopc.job import JobDefinition
from twopc.runtime.spec import SubtaskSpec


class StoppedEarly(Exception):
    """A stop was asked for before any subtask ran: there is nothing to take a last checkpoint of."""

    def __init__(self) -> None:
        super().__init__("stopped before any subtask had started")


class Stage(Protocol):
    """The subtasks of one attempt, running."""

    def wait(self, timeout: float) -> bool:
        """Return whether all subtasks have ended, after at most `timeout` seconds."""
        ...

    def error(self) -> str | None:
        """After the end: what the host says went wrong, None if nothing did."""
        ...

    def has_said_why(self) -> bool:
        """After the end: whether a subtask has told the coordinator of its failure, as far as the host can know."""
        ...

    def shortage(self) -> str | None:
        """What the subtasks wait for before they can start, for a user to read; None where they have started."""
        ...

    def kill(self) -> None:
        """End the subtasks now, and return when they have ended or can't do harm; idempotent."""
        ...


class Host(Protocol):
    """Starts stages, one after the other, for as long as the run lasts."""

    def notice(self) -> str | None:
        """What the next `submit` has to start first, and takes long; None where there is no such thing."""
        ...

    def submit(self, definition: JobDefinition, specs: Sequence[SubtaskSpec]) -> Stage:
        """Start one subtask per spec, all at once; raise StoppedEarly where a stop comes while this takes long."""
        ...

    def close(self) -> None:
        """End what is still running and let go of everything."""
        ...
