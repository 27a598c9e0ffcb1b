"""A driver's client of a coordinator in the same process: it asks the jobs as the service does behind the wire."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from coordinator.events import (
    ConfirmCommittables,
    EndAttempt,
    NoteInput,
    PlanStarts,
    RefuseRescale,
    SettleLoss,
    StartAttempt,
    StopJob,
)
from coordinator.jobs import Jobs
from twopc.config import RunSettings
from twopc.protocol.attempts import GlobalCommit, StartedAttempt, Traces
from twopc.protocol.ids import AttemptId, CheckpointId, SubtaskIndex
from twopc.protocol.planned_starts import StartsPlanned

T = TypeVar("T")


class DirectClient(ABC):
    """A `twopc.driver.edge.Coordinator`; how a question comes to the jobs is said by who has them."""

    @abstractmethod
    def ask(self, do: Callable[[Jobs], T]) -> T:
        """Return what this returns of the jobs; raise what it raises, or Unavailable if they can't be asked."""

    def start_attempt(
        self,
        job: str,
        settings: RunSettings,
        restore_from: str,
        traces: Traces,
        *,
        restart: bool,
        restart_of: AttemptId,
    ) -> StartedAttempt:
        checkpoints = settings.checkpoint_settings()
        request = StartAttempt(
            settings.parallelism, checkpoints, restore_from, traces, restart=restart, restart_of=restart_of
        )
        return self.ask(lambda jobs: jobs.start_attempt(job, request))

    def confirm(self, job: str, attempt: AttemptId, checkpoint_id: CheckpointId, names: Sequence[str]) -> None:
        self.ask(lambda jobs: jobs.request(job, ConfirmCommittables(attempt, checkpoint_id, tuple(names))))

    def next_global_commit(self, job: str, attempt: AttemptId) -> GlobalCommit | None:
        return self.ask(lambda jobs: jobs.next_global_commit(job, attempt))

    def settle_loss(
        self,
        job: str,
        attempt: AttemptId,
        checkpoint_id: CheckpointId,
        names: Sequence[str],
        bases: Mapping[SubtaskIndex, CheckpointId],
        message: str,
    ) -> None:
        decided = SettleLoss(attempt, checkpoint_id, tuple(names), tuple(sorted(bases.items())), message)
        self.ask(lambda jobs: jobs.request(job, decided))

    def plan_starts(self, job: str, planned: StartsPlanned) -> None:
        self.ask(lambda jobs: jobs.request(job, PlanStarts(planned)))

    def stop(self, job: str, attempt: AttemptId) -> None:
        self.ask(lambda jobs: jobs.request(job, StopJob(attempt)))

    def refuse_rescale(self, job: str, attempt: AttemptId, request_id: str, message: str) -> None:
        self.ask(lambda jobs: jobs.request(job, RefuseRescale(attempt, request_id, message)))

    def note_input(self, job: str, attempt: AttemptId, notes: Sequence[str]) -> None:
        self.ask(lambda jobs: jobs.request(job, NoteInput(attempt, tuple(notes))))

    def end_attempt(self, job: str, attempt: AttemptId, reason: str) -> None:
        self.ask(lambda jobs: jobs.request(job, EndAttempt(attempt, reason)))
