"""The edge of a driver: what it needs of a coordinator, of the job's connectors, and of a host for its subtasks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeVar

from twopc.driver.host import Host, RunningSubtasks
from twopc.errors import CheckpointCorrupted, TwoPhaseCommitError
from twopc.faults.crash_table import CrashPoint
from twopc.graph import JobDefinition
from twopc.job_connectors import JobSink
from twopc.protocol.facts import SplitPosition
from twopc.protocol.ids import AttemptId, CheckpointId
from twopc.protocol.requests import Request
from twopc.sink import Committer
from twopc.source import Source

A = TypeVar("A")


class Coordinator(Protocol):
    """The coordinator, as a driver calls it; see `twopc.rpc.job_client.JobClient`."""

    def ask(self, job: str, request: Request[A]) -> A: ...


class Edge(Protocol):
    """The edge of a driver. `running` was submitted last, and `committer` opened last."""

    definition: JobDefinition
    source: Source
    sink: JobSink
    committer: Committer | None
    coordinator: Coordinator
    host: Host
    running: RunningSubtasks | None

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
