"""Where subtasks run, as the driver sees it: Spark, or plain processes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from twopc.job import JobDefinition
from twopc.runtime.spec import SubtaskSpec


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

    def kill(self) -> None:
        """End the subtasks now, and return when they have ended or can't do harm; idempotent."""
        ...


class Host(Protocol):
    """Starts stages, one after the other, for as long as the run lasts."""

    def submit(self, definition: JobDefinition, specs: Sequence[SubtaskSpec]) -> Stage:
        """Start one subtask per spec, all at once."""
        ...

    def close(self) -> None:
        """End what is still running and let go of everything."""
        ...
