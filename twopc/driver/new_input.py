"""New splits of the input, looked for beside the subtasks of an attempt, and what comes of them.

Splits belong to an attempt, from its plan on. So what is found is read by a new attempt, which starts as soon as a
checkpoint has completed: little is read twice, and nothing that readers see. Its plan finds out what there is then.

Invariants: what the next plan would refuse ends no attempt that is well; one refusal is told once.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from twopc import events
from twopc.context import JobContext
from twopc.driver.actions import refuse_what_no_sink_takes
from twopc.driver.edge import Edge
from twopc.driver.effects import UNTIMED, Action, Log, Notice, Tell
from twopc.driver.restart import PlannedRestart
from twopc.driver.restore_checks import moved_keys_of, refuse_uneven_inputs
from twopc.errors import ConfigurationError, TwoPhaseCommitError
from twopc.listing import listed
from twopc.source import Source, Split

_REFUSED = "The job goes on without it, until it starts again: that is refused then"


class InputHasGrown(PlannedRestart):
    """There is more to read: the attempt ends, and the next one reads it."""


@dataclass(frozen=True, slots=True)
class FindNewSplits(Action[list[Split]]):
    """List the splits that there are besides those that are read; ConfigurationError for what can't be read."""

    context: JobContext
    read: tuple[Split, ...]

    def carry_out(self, edge: Edge) -> list[Split]:
        with edge.source.open_planner(self.context) as planner:
            added = planner.added(self.read)
        if added:
            every = [*self.read, *added]
            refuse_uneven_inputs(self.context.job, edge.definition, every)
            for why in moved_keys_of(edge.definition, {split.id for split in self.read}, every).values():
                raise ConfigurationError(why)
            refuse_what_no_sink_takes(edge, self.context, every)
        return added


@dataclass(slots=True)
class NewInput:
    """The input that an attempt knows of and does not read; `read` is what it reads."""

    context: JobContext
    read: tuple[Split, ...]
    interval_seconds: float
    _found: Sequence[Split] = ()
    _found_after: int = 0
    _due_at: float | None = None
    _under_way: bool = False
    _refused: str = ""

    def due(self, now: float) -> Iterator[FindNewSplits]:
        """Yield the question where it is time for it; the first comes an interval after the attempt began to run."""
        if self._due_at is None:
            self._due_at = now + self.interval_seconds
        if now >= self._due_at and not self._under_way and not self._found:
            self._under_way = True
            yield FindNewSplits(self.context, self.read)

    @property
    def deadline(self) -> float | None:
        return None if self._under_way or self._found else self._due_at

    def answered(self, answer: list[Split] | Exception, completed: int, now: float) -> Iterator[Notice]:
        """Take in what there is, when so many checkpoints of the attempt have completed."""
        self._under_way = False
        self._due_at = now + self.interval_seconds
        job, attempt = self.context.job, self.context.attempt
        match answer:
            case ConfigurationError():
                if (refused := f"{answer}. {_REFUSED}") != self._refused:
                    self._refused = refused
                    yield Log(logging.WARNING, f"there is new input, which can't be read: {refused}", never_hidden=True)
                    yield Tell(events.NewInputRefused(job, attempt, UNTIMED, message=refused))
            case TwoPhaseCommitError():
                yield Log(logging.DEBUG, f"new input was not looked for yet: {answer}")
            case Exception():
                yield Log(logging.ERROR, "new input could not be looked for", answer)
            case _:
                self._found, self._found_after = answer, completed
                if answer:
                    yield Tell(events.NewInputFound(job, attempt, UNTIMED, splits=self._named))

    def look(self, completed: int) -> None:
        """Raise InputHasGrown where it is time for an attempt that reads what was found."""
        if self._found and completed > self._found_after:
            raise InputHasGrown(f"there is new input: {self._named}; the next attempt reads it, too")

    @property
    def _named(self) -> str:
        return listed(split.id for split in self._found)


def looks_for_new_input(context: JobContext, source: Source, read: tuple[Split, ...]) -> NewInput | None:
    """Return what looks beside an attempt; None where nobody asked for it, or the run ends with the input of now."""
    interval_ms = source.discover_ms
    return None if interval_ms is None or context.settings.until_end else NewInput(context, read, interval_ms / 1000)
