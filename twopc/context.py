"""The context of a source or a sink: the job, the run and the attempt that it works for."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from twopc.config import RunSettings
from twopc.protocol.ids import AttemptId, SubtaskIndex


@dataclass(frozen=True, slots=True)
class JobContext:
    """One attempt of a job. Made anew for every attempt."""

    job: str
    attempt: AttemptId
    parallelism: int
    settings: RunSettings


@dataclass(frozen=True, slots=True)
class SubtaskContext(JobContext):
    """The same, for one subtask. `shared` is what its source and sink have in common, by keys of their own."""

    subtask: SubtaskIndex
    shared: dict[Any, Any] = field(default_factory=dict, repr=False, compare=False)
