"""The edge of a driver: what it needs of a coordinator, of the job's connectors, and of a host for its subtasks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from twopc.config import RunSettings
from twopc.driver.host import Host, Stage
from twopc.errors import CheckpointCorrupted, TwoPhaseCommitError
from twopc.faults.crash_table import CrashPoint
from twopc.graph import JobDefinition
from twopc.job_connectors import JobSink
from twopc.protocol.attempts import GlobalCommit, StartedAttempt, Traces
from twopc.protocol.facts import SplitPosition
from twopc.protocol.ids import AttemptId, CheckpointId, SubtaskIndex
from twopc.protocol.planned_starts import StartsPlanned
from twopc.sink import Committer
from twopc.source import Source


class Coordinator(Protocol):
    """The coordinator, as a driver calls it; see `twopc.rpc.job_client.JobClient`."""

    def start_attempt(
        self,
        job: str,
        settings: RunSettings,
        restore_from: str,
        traces: Traces,
        *,
        restart: bool,
        restart_of: AttemptId,
    ) -> StartedAttempt: ...

    def confirm(self, job: str, attempt: AttemptId, checkpoint_id: CheckpointId, names: Sequence[str]) -> None: ...

    def next_global_commit(self, job: str, attempt: AttemptId) -> GlobalCommit | None: ...

    def settle_loss(
        self,
        job: str,
        attempt: AttemptId,
        checkpoint_id: CheckpointId,
        names: Sequence[str],
        bases: Mapping[SubtaskIndex, CheckpointId],
        message: str,
    ) -> None: ...

    def plan_starts(self, job: str, planned: StartsPlanned) -> None: ...

    def stop(self, job: str, attempt: AttemptId) -> None: ...

    def refuse_rescale(self, job: str, attempt: AttemptId, request_id: str, message: str) -> None: ...

    def note_input(self, job: str, attempt: AttemptId, notes: Sequence[str]) -> None: ...

    def end_attempt(self, job: str, attempt: AttemptId, reason: str) -> None: ...


class Edge(Protocol):
    """The edge of a driver. `stage` was submitted last, and `committer` opened last."""

    definition: JobDefinition
    source: Source
    sink: JobSink
    committer: Committer | None
    coordinator: Coordinator
    host: Host
    stage: Stage | None

    def reached(self, point: CrashPoint, checkpoint: CheckpointId) -> None:
        """Come to a place where a process may be stopped."""
        ...

    def all_damage(self, error: CheckpointCorrupted, checkpoint_id: CheckpointId | None) -> TwoPhaseCommitError:
        """Name all that is damaged, as every command does."""
        ...

    def kept_positions(self) -> Sequence[SplitPosition]:
        """The positions of all checkpoints that are kept; raises where one of them can't be told."""
        ...

    def remove_work(self, attempt: AttemptId) -> None:
        """Remove what subtasks of an attempt that ended on this machine have left in temporary folders."""
        ...
