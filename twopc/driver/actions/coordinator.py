"""The driver's requests to the coordinator, and its messages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from twopc.context import JobContext
from twopc.driver.edge import Edge
from twopc.driver.effects import Action
from twopc.protocol import requests
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
        settings = self.context.settings
        request = requests.StartAttempt(
            settings.parallelism,
            settings.checkpoint_settings(),
            self.restore_from,
            self.traces,
            restart=self.restart,
            restart_of=self.context.attempt,
        )
        return edge.coordinator.ask(self.context.job, request)


@dataclass(frozen=True, slots=True)
class StoreStarts(Action[None]):
    """Store where reading begins, before anything is read."""

    job: str
    planned: StartsPlanned

    def carry_out(self, edge: Edge) -> None:
        edge.coordinator.ask(self.job, requests.PlanStarts(self.planned))


@dataclass(frozen=True, slots=True)
class Confirm(Action[None]):
    """Without names it asks whether the attempt still owns the job: raises Fenced if it doesn't."""

    context: JobContext
    checkpoint_id: CheckpointId
    names: tuple[str, ...] = ()

    def carry_out(self, edge: Edge) -> None:
        request = requests.ConfirmCommittables(self.context.attempt, self.checkpoint_id, self.names)
        edge.coordinator.ask(self.context.job, request)


@dataclass(frozen=True, slots=True)
class SettleLoss(Action[None]):
    """Store what becomes of transactions that are lost."""

    context: JobContext
    checkpoint_id: CheckpointId
    names: tuple[str, ...]
    bases: Mapping[SubtaskIndex, CheckpointId]
    message: str

    def carry_out(self, edge: Edge) -> None:
        bases = tuple(sorted(self.bases.items()))
        request = requests.SettleLoss(self.context.attempt, self.checkpoint_id, self.names, bases, self.message)
        edge.coordinator.ask(self.context.job, request)


@dataclass(frozen=True, slots=True)
class RequestStop(Action[None]):
    """Ask the coordinator for a last checkpoint."""

    context: JobContext

    def carry_out(self, edge: Edge) -> None:
        edge.coordinator.ask(self.context.job, requests.StopJob(self.context.attempt))


@dataclass(frozen=True, slots=True)
class EndAttempt(Action[None]):
    """Tell the coordinator that the attempt is over, and why."""

    context: JobContext
    reason: str

    def carry_out(self, edge: Edge) -> None:
        edge.coordinator.ask(self.context.job, requests.EndAttempt(self.context.attempt, self.reason))
