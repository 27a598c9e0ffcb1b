"""The driver's actions on the subtasks of an attempt: starts, watches and ends them."""

from __future__ import annotations

from dataclasses import dataclass

from twopc.driver.edge import Edge
from twopc.driver.effects import Action
from twopc.protocol.ids import AttemptId
from twopc.runtime.spec import SubtaskSpec


@dataclass(frozen=True, slots=True)
class FindHostNotice(Action[str | None]):
    """The host's notice of something that it has to start first, and that takes long."""

    on_calling_thread = True

    def carry_out(self, edge: Edge) -> str | None:
        return edge.host.notice()


@dataclass(frozen=True, slots=True)
class Submit(Action[None]):
    """Start one subtask a spec."""

    specs: tuple[SubtaskSpec, ...]
    on_calling_thread = True

    def carry_out(self, edge: Edge) -> None:
        edge.running = edge.host.submit(edge.definition, self.specs)


@dataclass(frozen=True, slots=True)
class FindShortage(Action[str | None]):
    """The shortage for which the subtasks wait before they can start."""

    on_calling_thread = True

    def carry_out(self, edge: Edge) -> str | None:
        return None if edge.running is None else edge.running.shortage()


@dataclass(frozen=True, slots=True)
class Drain(Action[None]):
    """Let the subtasks of a job that has finished end by themselves."""

    seconds: float
    on_calling_thread = True

    def carry_out(self, edge: Edge) -> None:
        if edge.running is not None:
            edge.running.drain(self.seconds)


@dataclass(frozen=True, slots=True)
class Kill(Action[None]):
    """End the subtasks now."""

    on_calling_thread = True

    def carry_out(self, edge: Edge) -> None:
        if edge.running is not None:
            edge.running.kill()
            edge.running = None


@dataclass(frozen=True, slots=True)
class RemoveWork(Action[None]):
    """Remove what subtasks of an attempt on this machine left in temporary folders."""

    attempt: AttemptId

    def carry_out(self, edge: Edge) -> None:
        edge.remove_work(self.attempt)
