"""Trims the job's own topics: deletes what was written and read, when kept checkpoints need it no more. Pure."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from twopc.context import JobContext
from twopc.driver.edge import Edge
from twopc.driver.effects import Action, Log
from twopc.graph import JobDefinition

TRIM_PAUSE_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Trim(Action[None]):
    """Delete what the job wrote for itself, as far as no kept checkpoint goes back."""

    context: JobContext

    def carry_out(self, edge: Edge) -> None:
        edge.source.forget(self.context, edge.kept_positions())


@dataclass(slots=True)
class TrimSchedule:
    """Begun when a checkpoint of the attempt has completed, then once a minute at most, never two at once."""

    due_at: float = 0.0
    _under_way: bool = False
    _is_logged: bool = False

    def due(self, context: JobContext, completed: int, now: float) -> Iterator[Action[Any]]:
        """Yield what is to be done now; so many checkpoints of the attempt have completed."""
        deadline = self.deadline(completed)
        if deadline is not None and now >= deadline:
            self._under_way = True
            yield Trim(context)

    def deadline(self, completed: int) -> float | None:
        """The time at which to begin; None where that is not known."""
        return self.due_at if completed and not self._under_way else None

    def answered(self, answer: Exception | None, now: float) -> Iterator[Log]:
        """Take in how one ended: what was not deleted will be later, and is in nobody's way."""
        self._under_way = False
        self.due_at = now + TRIM_PAUSE_SECONDS
        if answer is not None:
            level = logging.DEBUG if self._is_logged else logging.WARNING
            self._is_logged = True
            yield Log(level, f"records that the job has read of its own topics were not deleted: {answer}")


def trims_of(definition: JobDefinition) -> TrimSchedule | None:
    """Return the trims of an attempt; None for a job that writes nothing for itself."""
    return TrimSchedule() if any(definition.stages.values()) else None
