"""The descriptions of a coordinator's jobs, for callers inside its process."""

from __future__ import annotations

from coordinator.access import Limits
from coordinator.jobs import Jobs
from coordinator.loop import Loop, LoopClient
from twopc.protocol.job_description import JobDescription

PATIENCE_SECONDS = 5.0
"""Less than a scraper waits: it is to hear that the coordinator does not answer."""


class JobDescriptions:
    """Thread-safe. A job is known from the first time on that anybody asks for it, subtasks and drivers included."""

    def __init__(self, loop: Loop, limits: Limits) -> None:
        self._client = LoopClient(loop, limits)

    def known(self) -> tuple[JobDescription, ...]:
        """Return all jobs that are loaded, by name; raise Unavailable if the coordinator is too busy to answer."""
        return self._client.ask_within(PATIENCE_SECONDS, Jobs.describe_known)
