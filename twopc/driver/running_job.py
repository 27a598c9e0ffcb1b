"""The job of a run, as its attempts have it."""

from __future__ import annotations

from dataclasses import dataclass

from twopc.graph import JobDefinition


@dataclass(frozen=True, slots=True)
class RunningJob:
    """A job, and where its subtasks find the coordinator."""

    definition: JobDefinition
    address: str
    token: str

    @property
    def name(self) -> str:
        return self.definition.name
