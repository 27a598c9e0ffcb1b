"""The driver's requests to the coordinator, and its messages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from twopc.context import JobContext
from twopc.driver.edge import Edge
from twopc.driver.effects import Action
from twopc.protocol.attempts import StartedAttempt, Traces
from twopc.protocol.ids import CheckpointId, SubtaskIndex
from twopc.protocol.planned_starts import StartsPlanned


@dataclass(frozen=True, slots=True)
class StartAttempt(Action[StartedAttempt]):
    """`context.attempt` is the one before, if this run had one."""

    context: JobContext
    restore_from: str
    traces: Traces
    restart: bool

    def carry_out(self, edge: Edge) -> StartedAttempt:
        return edge.coordinator.start_attempt(
            self.context.job,
            self.context.settings,
            self.restore_from,
            self.traces,
            restart=self.restart,
            restart_of=self.context.attempt,
        )


@dataclass(frozen=True, slots=True)
class StoreStarts(Action[None]):
    """Store where reading begins, before anything is read."""

    job: str
    planned: StartsPlanned

    def carry_out(self, edge: Edge) -> None:
        edge.coordinator.plan_starts(self.job, self.planned)


@dataclass(frozen=True, slots=True)
class Confirm(Action[None]):
    """Without names it asks whether the attempt still owns the job: raises Fenced if it doesn't."""

    context: JobContext
    checkpoint_id: CheckpointId
    names: tuple[str, ...] = ()

    def carry_out(self, edge: Edge) -> None:
        edge.coordinator.confirm(self.context.job, self.context.attempt, self.checkpoint_id, self.names)


@dataclass(frozen=True, slots=True)
class SettleLoss(Action[None]):
    """Store what becomes of transactions that are lost."""

    context: JobContext
    checkpoint_id: CheckpointId
    names: tuple[str, ...]
    bases: Mapping[SubtaskIndex, CheckpointId]
    message: str

    def carry_out(self, edge: Edge) -> None:
        edge.coordinator.settle_loss(
            self.context.job, self.context.attempt, self.checkpoint_id, self.names, self.bases, self.message
        )


@dataclass(frozen=True, slots=True)
class RequestStop(Action[None]):
    """Ask the coordinator for a last checkpoint."""

    context: JobContext

    def carry_out(self, edge: Edge) -> None:
        edge.coordinator.stop(self.context.job, self.context.attempt)


@dataclass(frozen=True, slots=True)
class EndAttempt(Action[None]):
    """Tell the coordinator that the attempt is over, and why."""

    context: JobContext
    reason: str

    def carry_out(self, edge: Edge) -> None:
        edge.coordinator.end_attempt(self.context.job, self.context.attempt, self.reason)
