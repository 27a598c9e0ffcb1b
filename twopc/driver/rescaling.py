"""Another number of subtasks, wanted by somebody while an attempt runs, and what comes of it.

Invariants: the attempt ends for it only after a checkpoint that completed since it was asked, so little is read twice;
and only where the host is not known to lack room: who asks for too much ends no attempt that is well.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass, field

from twopc import events
from twopc.context import JobContext
from twopc.driver.edge import Edge
from twopc.driver.effects import Action, Log, Notice
from twopc.driver.restart import PlannedRestart
from twopc.protocol import requests
from twopc.protocol.ids import CheckpointId


class ParallelismChanged(PlannedRestart):
    """So many subtasks are wanted from the next attempt on."""

    def __init__(self, parallelism: int) -> None:
        super().__init__(f"{parallelism} subtasks are wanted: the next attempt has so many")
        self.parallelism = parallelism


@dataclass(frozen=True, slots=True)
class FindRoom(Action[str | None]):
    """Ask the host why it can't run so many subtasks; None where nothing is known against it."""

    request_id: str
    parallelism: int
    on_calling_thread = True

    def carry_out(self, edge: Edge) -> str | None:
        return edge.host.refusal(self.parallelism)


@dataclass(frozen=True, slots=True)
class RefuseRescale(Action[None]):
    """Tell who asked that it can't be."""

    context: JobContext
    request_id: str
    message: str

    def carry_out(self, edge: Edge) -> None:
        edge.coordinator.ask(
            self.context.job, requests.RefuseRescale(self.context.attempt, self.request_id, self.message)
        )


@dataclass(slots=True)
class Rescaling:
    """The request for another parallelism: whether there is room for it, and who has still to be told if not."""

    context: JobContext
    _looked_for: str = ""
    _has_room: bool = False
    _refusals: list[RefuseRescale] = field(default_factory=list)

    def due(self, wanted: events.RescaleRequested | None) -> Iterator[Action[None] | Action[str | None]]:
        """Yield the question about a wish that is new, and the answer to one that can't be met."""
        if wanted is not None and wanted.request_id != self._looked_for:
            self._looked_for, self._has_room = wanted.request_id, False
            yield FindRoom(wanted.request_id, wanted.parallelism)
        while self._refusals:
            yield self._refusals.pop()

    def answered(self, question: FindRoom, answer: str | Exception | None) -> Iterator[Notice]:
        """Take in what the host says of a wish; one that was replaced meanwhile counts no more."""
        if question.request_id != self._looked_for:
            return
        match answer:
            case None:
                self._has_room = True
            case str():
                self._refuse(answer)
            case _:
                yield Log(logging.ERROR, "the host could not be asked for room", answer)
                self._refuse(f"it can't be told whether there is room for them: {answer}")

    def look(self, wanted: events.RescaleRequested | None, completed: CheckpointId) -> None:
        """Raise ParallelismChanged where it is time for an attempt with so many; `completed` is the newest."""
        if wanted is not None and self._has_room and completed > wanted.after:
            raise ParallelismChanged(wanted.parallelism)

    def _refuse(self, message: str) -> None:
        self._refusals.append(RefuseRescale(self.context, self._looked_for, message))
