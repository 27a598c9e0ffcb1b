"""The host of subtasks, as the driver sees it: Spark, plain processes, or the driver's own thread."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum, auto
from typing import Protocol

from twopc.errors import TwoPhaseCommitError
from twopc.graph import JobDefinition
from twopc.runtime.spec import SubtaskSpec


class StoppedEarly(Exception):
    """A stop was asked for before any subtask ran: there is nothing to take a last checkpoint of."""

    def __init__(self) -> None:
        super().__init__("stopped before any subtask had started")


class Told(Enum):
    """Whether a subtask has told the coordinator why it ended, as far as its host can know."""

    YES = auto()
    PERHAPS = auto()
    NO = auto()
    """It was killed, so nothing is on its way."""


class RunningSubtasks(Protocol):
    """The subtasks of one attempt, running. That one has ended never means that the job has finished."""

    def wait(self, timeout: float) -> bool:
        """Return whether any subtask has ended, however it did, after at most `timeout` seconds."""
        ...

    def drain(self, timeout: float) -> None:
        """Return when all subtasks have ended, or after `timeout` seconds."""
        ...

    def error(self) -> TwoPhaseCommitError | None:
        """After an end: what the host saw go wrong, None if every end was one that a subtask has when it is told to."""
        ...

    def told_why(self) -> Told:
        """After an end: whether a subtask has told the coordinator of its failure."""
        ...

    def shortage(self) -> str | None:
        """The shortage that keeps the subtasks from starting, for a user to read; None where they have started."""
        ...

    def kill(self) -> None:
        """End the subtasks now, and return when they have ended or can't do harm; idempotent."""
        ...


class Host(Protocol):
    """Starts the subtasks of one attempt after the other, for as long as the run lasts."""

    def notice(self) -> str | None:
        """A notice of what the next `submit` has to start first, and takes long; None where there is no such thing."""
        ...

    def refusal(self, parallelism: int) -> str | None:
        """Say why so many subtasks can't run here, for a user to read; None where nothing is known against it."""
        ...

    def submit(self, definition: JobDefinition, specs: Sequence[SubtaskSpec]) -> RunningSubtasks:
        """Start one subtask per spec, all at once; raise StoppedEarly where a stop comes while this takes long."""
        ...

    def close(self) -> None:
        """End what is still running and let go of everything."""
        ...
